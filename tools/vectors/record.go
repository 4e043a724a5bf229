package main

import "encoding/json"

// Case is one line: steps on one object, each with upstream's answer.
type Case struct {
	Name   string `json:"name"`
	Schema string `json:"schema"`
	Type   any    `json:"type"`
	Level  string `json:"level"`
	// ResetFields has, by subresource, the paths that a write through it never owns.
	ResetFields map[string][][]string `json:"resetFields,omitempty"`
	// Live is the object before the first step, where there is one.
	Live  any     `json:"live,omitempty"`
	Steps []*Step `json:"steps"`
}

// Step is one write.
type Step struct {
	Operation   string `json:"operation"`
	Manager     string `json:"manager"`
	Version     string `json:"version"`
	Subresource string `json:"subresource"`
	// Type is the object's type from this step on, where it changes.
	Type string `json:"type,omitempty"`
	// RemovedVersion is served no more, from this step on.
	RemovedVersion string  `json:"removedVersion,omitempty"`
	Time           string  `json:"time,omitempty"`
	Object         any     `json:"object"`
	Expect         *Expect `json:"expect"`
}

// Expect is the state after a step. An absent object or managed is the one of the step before.
type Expect struct {
	Object  *any      `json:"object,omitempty"`
	Managed *[]*Entry `json:"managed,omitempty"`
	Error   *Error    `json:"error"`
}

// Entry is one of the managed fields' entries.
type Entry struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	APIVersion  string          `json:"apiVersion"`
	Subresource string          `json:"subresource"`
	Time        string          `json:"time,omitempty"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

// Error says why a step changed nothing.
type Error struct {
	Kind      string     `json:"kind"`
	Message   string     `json:"message"`
	Conflicts []Conflict `json:"conflicts,omitempty"`
}

// Conflict is one field that another manager owns.
type Conflict struct {
	Manager string `json:"manager"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

func (c *Case) family() string {
	if kind, ok := c.Type.(map[string]string); ok {
		return c.Level + " " + kind["kind"]
	}
	return c.Level + " " + c.Schema
}

// copied is a deep copy, numbers kept as whole numbers where they are.
func copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		result := make(map[string]any, len(value))
		for key, item := range value {
			result[key] = copied(item)
		}
		return result
	case []any:
		result := make([]any, len(value))
		for i, item := range value {
			result[i] = copied(item)
		}
		return result
	default:
		return value
	}
}

func text(value any) string {
	bytes, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(bytes)
}
