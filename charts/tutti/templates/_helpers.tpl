{{/* Of every object. The version stands in the image alone, so that an upgrade changes one line. */}}
{{- define "tutti.labels" -}}
{{ include "tutti.selector" . }}
app.kubernetes.io/part-of: tutti
{{- end }}

{{- define "tutti.selector" -}}
app.kubernetes.io/name: tutti
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tutti.settings" -}}
{{- $secrets := "/etc/tutti/secrets" -}}
repository:
  url: {{ .Values.repository.url | quote }}
  {{- with .Values.repository.branch }}
  branch: {{ . | quote }}
  {{- end }}
  {{- with .Values.repository.path }}
  path: {{ . | quote }}
  {{- end }}
  {{- if eq .Values.repository.auth "token" }}
  credentials: {token: {file: {{ $secrets }}/token}}
  {{- else if eq .Values.repository.auth "ssh" }}
  credentials: {sshKey: {{ $secrets }}/ssh-key, knownHosts: {{ $secrets }}/known-hosts}
  {{- end }}
{{- if .Values.repository.existingSecret }}
# The config repository may name these files, as `{file: hook}`.
secrets: {{ $secrets }}
{{- end }}
kubeconfigs: /etc/tutti/kubeconfigs
{{- range $name, $value := .Values.settings }}
{{- if $value }}
{{ $name }}: {{ $value | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* A limit of memory in bytes, for the rule that compares with it. */}}
{{- define "tutti.bytes" -}}
{{- $text := toString . -}}
{{- if hasSuffix "Gi" $text -}}
{{ mul (trimSuffix "Gi" $text | int64) 1073741824 }}
{{- else if hasSuffix "Mi" $text -}}
{{ mul (trimSuffix "Mi" $text | int64) 1048576 }}
{{- else -}}
{{ fail (printf "resources.limits.memory: %s: write it in whole Mi or Gi, as the alert rule needs it" $text) }}
{{- end -}}
{{- end }}
