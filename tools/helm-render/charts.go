package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"
)

// How many charts are kept, and how many bytes of them.
const (
	mostCharts = 64
	mostBytes  = 128 << 20
)

// Charts that were loaded, by digest.
type Charts struct {
	known map[string]*loaded
	bytes int
	clock int
}

type loaded struct {
	chart *chart.Chart
	bytes int
	used  int
}

func newCharts() *Charts {
	return &Charts{known: map[string]*loaded{}}
}

// get answers with nothing when the chart is not known and came without files.
func (c *Charts) get(request *Request) (*loaded, error) {
	c.clock++
	if found, ok := c.known[request.Chart]; ok {
		found.used = c.clock
		return found, nil
	}
	if len(request.Files) == 0 {
		return nil, nil
	}
	parsed, err := load(request)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, file := range request.Files {
		size += len(file.data)
	}
	c.makeRoom(size)
	added := &loaded{chart: parsed, bytes: size, used: c.clock}
	c.known[request.Chart] = added
	c.bytes += size
	return added, nil
}

func (c *Charts) makeRoom(size int) {
	for len(c.known) > 0 && (len(c.known) >= mostCharts || c.bytes+size > mostBytes) {
		oldest := ""
		for digest, candidate := range c.known {
			if oldest == "" || candidate.used < c.known[oldest].used {
				oldest = digest
			}
		}
		c.bytes -= c.known[oldest].bytes
		delete(c.known, oldest)
	}
}

func load(request *Request) (*chart.Chart, error) {
	files := make([]*archive.BufferedFile, 0, len(request.Files))
	ignored, err := ignored(request)
	if err != nil {
		return nil, err
	}
	for _, file := range request.Files {
		if !ignored(file.Name) {
			data := bytes.TrimPrefix(file.data, []byte{0xEF, 0xBB, 0xBF})
			files = append(files, &archive.BufferedFile{Name: file.Name, Data: data})
		}
	}
	parsed, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	switch parsed.Metadata.Type {
	case "", "application":
	default:
		return nil, fmt.Errorf("%s charts are not installable", parsed.Metadata.Type)
	}
	if missing := missing(parsed); len(missing) > 0 {
		return nil, errors.New(
			"found in Chart.yaml, but missing in charts/ directory: " + strings.Join(missing, ", "))
	}
	return parsed, nil
}

func missing(parsed *chart.Chart) []string {
	var missing []string
	for _, wanted := range parsed.Metadata.Dependencies {
		found := false
		for _, dependency := range parsed.Dependencies() {
			found = found || dependency.Name() == wanted.Name
		}
		if !found {
			missing = append(missing, wanted.Name)
		}
	}
	return missing
}

// ignored says which files of a folder .helmignore leaves out: a file, or a folder that it is in.
func ignored(request *Request) (func(string) bool, error) {
	if !request.Folder {
		return func(string) bool { return false }, nil
	}
	rules := ignore.Empty()
	for _, file := range request.Files {
		if file.Name == ignore.HelmIgnore {
			parsed, err := ignore.Parse(bytes.NewReader(file.data))
			if err != nil {
				return nil, err
			}
			rules = parsed
		}
	}
	rules.AddDefaults()
	return func(name string) bool {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if rules.Ignore(folder, entry{folder, true}) {
				return true
			}
		}
		return rules.Ignore(name, entry{name, false})
	}, nil
}

// entry of a folder that is not on a disk.
type entry struct {
	name   string
	folder bool
}

func (e entry) Name() string       { return path.Base(e.name) }
func (e entry) Size() int64        { return 0 }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.folder }
func (e entry) Sys() any           { return nil }
func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir
	}
	return 0
}

// fresh copies what a render changes: Helm enables, renames and fills subcharts in place.
func fresh(source *chart.Chart) *chart.Chart {
	metadata := *source.Metadata
	metadata.Dependencies = nil
	for _, dependency := range source.Metadata.Dependencies {
		copied := *dependency
		metadata.Dependencies = append(metadata.Dependencies, &copied)
	}
	values, _ := deep(source.Values).(map[string]any)
	made := &chart.Chart{
		Metadata: &metadata, Lock: source.Lock, Templates: source.Templates,
		Values: values, Schema: source.Schema, Files: source.Files,
	}
	// Helm loads them in an order that changes from run to run.
	dependencies := append([]*chart.Chart{}, source.Dependencies()...)
	sort.SliceStable(dependencies, func(a, b int) bool { return dependencies[a].Name() < dependencies[b].Name() })
	for _, dependency := range dependencies {
		made.AddDependency(fresh(dependency))
	}
	return made
}

func deep(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		copied := make(map[string]any, len(value))
		for key, item := range value {
			copied[key] = deep(item)
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for index, item := range value {
			copied[index] = deep(item)
		}
		return copied
	default:
		return value
	}
}
