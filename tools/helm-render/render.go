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
	return split(known, made, files, answer)
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

func split(known *loaded, made *chart.Chart, files map[string]string, answer *Answer) *Answer {
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return failed(answer, stepOutput, "", err)
	}
	if err := definitions(known, made, answer); err != nil {
		return failed(answer, stepOutput, "", err)
	}
	for _, manifest := range manifests {
		if err := add(answer, Object{File: manifest.Name}, manifest.Content); err != nil {
			return failed(answer, stepOutput, manifest.Name, err)
		}
	}
	for _, hook := range hooks {
		if err := add(answer, Object{File: hook.Path, Hook: hookOf(hook)}, hook.Manifest); err != nil {
			return failed(answer, stepOutput, hook.Path, err)
		}
	}
	return answer
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

// definitions adds the files in crds/. Those of subcharts depend on which are enabled, so only a chart without any is
// read once.
func definitions(known *loaded, made *chart.Chart, answer *Answer) error {
	alone := len(made.Dependencies()) == 0 && len(known.chart.Dependencies()) == 0
	if alone && known.definitions != nil {
		answer.Objects = append(answer.Objects, known.definitions...)
		return nil
	}
	before := len(answer.Objects)
	for _, file := range made.CRDObjects() {
		documents := releaseutil.SplitManifests(string(file.File.Data))
		keys := make([]string, 0, len(documents))
		for key := range documents {
			keys = append(keys, key)
		}
		sort.Sort(releaseutil.BySplitManifestsOrder(keys))
		for _, key := range keys {
			if err := add(answer, Object{File: file.Filename, Definition: true}, documents[key]); err != nil {
				return fmt.Errorf("%s: %w", file.Filename, err)
			}
		}
	}
	if alone {
		known.definitions = append([]Object{}, answer.Objects[before:]...)
	}
	return nil
}

// add reads a document as Kubernetes clients do, with the line break that Helm writes behind it: a text at its end has it
// too. A document of comments alone is none.
func add(answer *Answer, object Object, text string) error {
	bytes, err := yaml.YAMLToJSON([]byte(text + "\n"))
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	if string(bytes) != "null" {
		object.Object = bytes
		answer.Objects = append(answer.Objects, object)
	}
	return nil
}
