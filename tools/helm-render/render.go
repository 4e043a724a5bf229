package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

const notes = "NOTES.txt"

func helmVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "helm.sh/helm/v4" {
				return module.Version
			}
		}
	}
	return "unknown"
}

func failed(answer *Answer, step, file string, err error) *Answer {
	answer.Error = &Failure{Step: step, File: file, Message: err.Error()}
	return answer
}

// render does what `helm template` does, step by step, but for the check of the values: their schemas are given back.
func render(charts *Charts, request *Request) *Answer {
	answer := &Answer{}
	known, err := charts.get(request)
	if err != nil {
		return failed(answer, stepLoad, "", err)
	}
	if known == nil {
		answer.Unknown = true
		return answer
	}
	made := fresh(known.chart)
	answer.Name, answer.Version = made.Name(), made.Metadata.Version
	if err := chartutil.ValidateReleaseName(request.Release.Name); err != nil {
		return failed(answer, stepRequest, "", fmt.Errorf("release name %q: %w", request.Release.Name, err))
	}
	capabilities, err := capabilities(&request.Capabilities)
	if err != nil {
		return failed(answer, stepRequest, "", err)
	}
	values, err := prepare(made, request, capabilities)
	if err != nil {
		return failed(answer, stepValues, "", err)
	}
	if wanted := made.Metadata.KubeVersion; wanted != "" &&
		!chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return failed(answer, stepValues, "Chart.yaml", fmt.Errorf(
			"chart requires kubeVersion: %s which is incompatible with Kubernetes %s",
			wanted, capabilities.KubeVersion.Version))
	}
	coalesced, err := values.Table("Values")
	if err != nil {
		return failed(answer, stepValues, "", err)
	}
	if err := schemas(made, made.Name(), coalesced, answer); err != nil {
		return failed(answer, stepValues, "", err)
	}
	files, err := engine.Engine{}.Render(made, values)
	if err != nil {
		return failed(answer, stepRender, "", err)
	}
	answer.Notes = takeNotes(made, files)
	return split(known, made, request, files, answer)
}

func capabilities(wanted *Capabilities) (*common.Capabilities, error) {
	made := common.DefaultCapabilities.Copy()
	if wanted.KubeVersion != "" {
		version, err := common.ParseKubeVersion(wanted.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("invalid kube version %q: %w", wanted.KubeVersion, err)
		}
		made.KubeVersion = *version
	}
	if wanted.Complete {
		made.APIVersions = nil
	}
	// A new list: the default one is shared.
	made.APIVersions = append(append(common.VersionSet{}, made.APIVersions...), wanted.APIVersions...)
	return made, nil
}

func prepare(made *chart.Chart, request *Request, capabilities *common.Capabilities) (common.Values, error) {
	given := map[string]any{}
	for _, layer := range request.Values {
		given = loader.MergeMaps(given, layer)
	}
	if err := chartutil.ProcessDependencies(made, given); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{
		Name: request.Release.Name, Namespace: request.Release.Namespace, Revision: max(request.Release.Revision, 1),
		IsInstall: !request.Release.IsUpgrade, IsUpgrade: request.Release.IsUpgrade,
	}
	return commonutil.ToRenderValuesWithSchemaValidation(made, given, options, capabilities, true)
}

// schemas lists every schema that Helm would check, with the values of its chart.
func schemas(made *chart.Chart, name string, values map[string]any, answer *Answer) error {
	if made.Schema != nil {
		bytes, err := json.Marshal(values)
		if err != nil {
			return err
		}
		answer.Schemas = append(answer.Schemas, Schema{Chart: name, Schema: string(made.Schema), Values: bytes})
	}
	for _, dependency := range made.Dependencies() {
		below, ok := values[dependency.Name()]
		if !ok || below == nil {
			continue
		}
		table, ok := asMap(below)
		if !ok {
			return fmt.Errorf("%s: invalid type for values: expected object (map), got %T", dependency.Name(), below)
		}
		if err := schemas(dependency, name+"."+dependency.Name(), table, answer); err != nil {
			return err
		}
	}
	return nil
}

func asMap(value any) (map[string]any, bool) {
	switch value := value.(type) {
	case map[string]any:
		return value, true
	case common.Values:
		return value, true
	default:
		return nil, false
	}
}

// takeNotes removes the notes of all charts from what was rendered, and gives those of the chart itself.
func takeNotes(made *chart.Chart, files map[string]string) string {
	own := files[path.Join(made.Name(), "templates", notes)]
	for name := range files {
		if strings.HasSuffix(name, notes) {
			delete(files, name)
		}
	}
	return own
}

// split takes apart what the templates made, as Helm does. Texts without a word of hooks are split by Helm and read by
// whoever asked; what a text with hooks is, Helm says.
func split(known *loaded, made *chart.Chart, request *Request, files map[string]string, answer *Answer) *Answer {
	definitions(known, made, request, answer)
	hooked := map[string]string{}
	names := make([]string, 0, len(files))
	for name, content := range files {
		switch {
		case strings.HasPrefix(path.Base(name), "_"):
		case strings.Contains(content, "helm.sh/hook"):
			hooked[name] = content
		default:
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		for _, text := range documents(files[name]) {
			answer.add(Object{File: name}, text)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(hooked, nil, releaseutil.InstallOrder)
	if err != nil {
		return failed(answer, stepOutput, "", err)
	}
	for _, manifest := range manifests {
		answer.add(Object{File: manifest.Name}, manifest.Content)
	}
	for _, hook := range hooks {
		answer.add(Object{File: hook.Path, Hook: hookOf(hook)}, hook.Manifest)
	}
	return answer
}

// documents of a text, in order.
func documents(text string) []string {
	split := releaseutil.SplitManifests(text)
	keys := make([]string, 0, len(split))
	for key := range split {
		keys = append(keys, key)
	}
	sort.Sort(releaseutil.BySplitManifestsOrder(keys))
	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, split[key])
	}
	return texts
}

func hookOf(hook *release.Hook) *Hook {
	made := &Hook{Weight: hook.Weight}
	for _, event := range hook.Events {
		made.Events = append(made.Events, event.String())
	}
	for _, policy := range hook.DeletePolicies {
		made.DeletePolicies = append(made.DeletePolicies, policy.String())
	}
	return made
}

// definitions adds the files in crds/. Those of subcharts depend on which are enabled, so only those of a chart without
// any are the same each time.
func definitions(known *loaded, made *chart.Chart, request *Request, answer *Answer) {
	answer.Alone = len(made.Dependencies()) == 0 && len(known.chart.Dependencies()) == 0
	if answer.Alone && request.DefinitionsKnown {
		return
	}
	for _, file := range made.CRDObjects() {
		for _, text := range documents(string(file.File.Data)) {
			answer.add(Object{File: file.Filename, Definition: true}, text)
		}
	}
}

// add adds a document with the line break that Helm writes behind it: a text at its end has it too.
func (a *Answer) add(object Object, text string) {
	object.text = text + "\n"
	object.Size = len(object.text)
	a.Objects = append(a.Objects, object)
}

// understand reads texts as Kubernetes clients do.
func understand(texts []Text) *Answer {
	answer := &Answer{}
	for _, text := range texts {
		bytes, err := yaml.YAMLToJSON([]byte(text.text))
		if err != nil {
			message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
			return failed(answer, stepOutput, text.File, errors.New(message))
		}
		answer.Objects = append(answer.Objects, Object{File: text.File, Object: bytes})
	}
	return answer
}
