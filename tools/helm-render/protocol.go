package main

import "encoding/json"

// A message is the length of its JSON, the length of what follows it, both in four bytes, most significant first; then
// both. What follows the JSON are texts that the JSON gives the sizes of, in its order: a chart of megabytes is not to be
// escaped and read twice.

// Request asks for one render. The chart is named by its digest; its files come with the first request for it, or after
// an answer that says that the chart is not known (any more).
type Request struct {
	Chart string `json:"chart"`
	Files []File `json:"files,omitempty"`
	// Files are a folder as it stands in a repository, where .helmignore counts; not a packaged chart.
	Folder bool `json:"folder,omitempty"`
	// Values over those of the chart, lowest first; null deletes.
	Values []map[string]any `json:"values,omitempty"`
	// Nothing is rendered: these texts are read as YAML, into objects.
	Texts []Text `json:"texts,omitempty"`
	// What the folder crds/ holds is known to whoever asks, if it depends on the chart alone.
	DefinitionsKnown     bool         `json:"definitionsKnown,omitempty"`
	Release              Release      `json:"release"`
	Capabilities         Capabilities `json:"capabilities"`
	DeadlineMilliseconds int          `json:"deadlineMilliseconds,omitempty"`
}

// File of a chart; its name is relative to the chart.
type File struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	data []byte
}

// Text of a document, and the file that made it.
type Text struct {
	File string `json:"file"`
	Size int    `json:"size"`
	text string
}

// Release is what templates see as .Release.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
	IsUpgrade bool   `json:"isUpgrade"`
}

// Capabilities are what templates see as .Capabilities; what is empty is Helm's default.
type Capabilities struct {
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
	// APIVersions are all there are; else they are more than Helm's defaults.
	Complete bool `json:"complete,omitempty"`
}

// Answer to a request. Schemas are there even if the render failed: a value that breaks a schema is the better message.
type Answer struct {
	Error   *Failure `json:"error,omitempty"`
	Unknown bool     `json:"unknownChart,omitempty"`
	Name    string   `json:"name,omitempty"`
	Version string   `json:"version,omitempty"`
	Objects []Object `json:"objects,omitempty"`
	Notes   string   `json:"notes,omitempty"`
	Schemas []Schema `json:"schemas,omitempty"`
	// The definitions are the same whatever the values are.
	Alone bool `json:"definitionsAlone,omitempty"`
}

// The steps at which a render can fail.
const (
	stepRequest = "request"
	stepLoad    = "load"
	stepValues  = "values"
	stepRender  = "render"
	stepOutput  = "output"
)

// Failure says at which step, and in Helm's words why.
type Failure struct {
	Step    string `json:"step"`
	File    string `json:"file,omitempty"`
	Message string `json:"message"`
}

// Object is one document of what the chart makes: its text behind the JSON, or what was read of it.
type Object struct {
	// The template or file, beginning with the name of the chart.
	File   string          `json:"file"`
	Size   int             `json:"size,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
	text   string
	// From the folder crds/, of which Helm changes and deletes nothing.
	Definition bool  `json:"definition,omitempty"`
	Hook       *Hook `json:"hook,omitempty"`
}

// Hook is an object that Helm applies apart from the others.
type Hook struct {
	Events         []string `json:"events"`
	Weight         int      `json:"weight"`
	DeletePolicies []string `json:"deletePolicies,omitempty"`
}

// Schema of a chart or subchart, with the values that it is about.
type Schema struct {
	// Names from the chart to the subchart, with dots.
	Chart  string          `json:"chart"`
	Schema string          `json:"schema"`
	Values json.RawMessage `json:"values"`
}
