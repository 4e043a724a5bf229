package main

import (
	"fmt"
	"math/rand/v2"
)

// managerCase draws one of the stories that field managers know beyond merging.
func managerCase(r *rand.Rand, k Kind) *Case {
	kind := k.parseable()
	c := &Case{Schema: "kubernetes", Type: k.record(), Level: "manager", ResetFields: k.resetFields()}
	w := &writer{pool: newPool(r, kind.Schema, true), kind: kind, versions: []string{k.apiVersion()}, spoils: 4}
	var server map[string]any
	w.finished = func(_ *Step, object any) any { return k.identify(object) }
	switch choice := w.IntN(10); {
	case choice < 3 && k.hasStatus:
		w.throughStatus()
	case choice < 5:
		server = map[string]any{"uid": "u", "resourceVersion": "7", "generation": int64(2), "creationTimestamp": "2026-01-01T00:00:00Z"}
		w.withServerFields(k, server)
	case choice < 6:
		server = map[string]any{"uid": "u"}
		c.Live = withMetadata(k.identify(w.object(kind.TypeRef)), server)
	case choice < 7:
		w.manyUpdaters()
	case choice < 8:
		w.resetting(k)
	}
	return w.finish(c, func() engine { return newManager(k, c.ResetFields, c.Live) })
}

// throughStatus writes some steps through the status subresource.
func (w *writer) throughStatus() {
	w.prepared = func(step *Step, _ int) {
		if w.chance(40) {
			step.Subresource = "status"
		}
	}
}

// withServerFields has the metadata in the objects that servers set and no entry ever names.
func (w *writer) withServerFields(k Kind, server map[string]any) {
	w.finished = func(step *Step, object any) any {
		object = k.identify(object)
		if step.Operation == "update" || w.chance(10) {
			return withMetadata(object, server)
		}
		return object
	}
}

func withMetadata(object any, more map[string]any) any {
	metadata := object.(map[string]any)["metadata"].(map[string]any)
	for key, value := range more {
		metadata[key] = value
	}
	return object
}

// manyUpdaters has more managers than entries of updates are kept.
func (w *writer) manyUpdaters() {
	w.length = 14
	w.spoils, w.fromLive = 0, true
	w.prepared = func(step *Step, number int) {
		if number == 5 {
			return
		}
		step.Operation, step.Manager = "update", fmt.Sprintf("u%d", number*7%15)
	}
	inner := w.finished
	w.finished = func(step *Step, object any) any {
		object = inner(step, object)
		// Each leaves a trace of its own: an updater that changes nothing has no entry.
		metadata := object.(map[string]any)["metadata"].(map[string]any)
		labels, ok := metadata["labels"].(map[string]any)
		if !ok {
			labels = map[string]any{}
			metadata["labels"] = labels
		}
		labels[step.Manager] = "x"
		return object
	}
}

// resetting has updates that empty the managed fields, as one does to start over.
func (w *writer) resetting(k Kind) {
	w.finished = func(step *Step, object any) any {
		object = k.identify(object)
		if step.Operation == "update" && w.chance(40) {
			return withMetadata(object, map[string]any{"managedFields": []any{map[string]any{}}})
		}
		return object
	}
}
