package main

import (
	"fmt"
	"math/rand/v2"
)

// managerCase draws one of the stories that field managers know beyond merging.
func managerCase(r *rand.Rand, k Kind) *Case {
	kind := k.parseable()
	c := &Case{Schema: "kubernetes", Type: k.record(), Level: "manager", ResetFields: k.resetFields()}
	w := &writer{
		pool: newPool(r, kind.Schema, true), kind: kind, versions: []string{k.apiVersion()}, spoils: 4, timed: true,
	}
	w.finished = func(_ *Step, object any) any { return k.identify(object) }
	switch choice := w.IntN(10); {
	case choice < 3 && k.hasStatus:
		w.throughStatus()
	case choice < 5:
		w.withServerFields(k)
	case choice < 6:
		c.Live = withMetadata(k.identify(w.object(kind.TypeRef)), map[string]any{"uid": "u"})
	case choice < 7:
		w.manyUpdaters()
	case choice < 8:
		w.resetting(k)
	case choice < 9:
		w.afterClientSideApply(k)
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
func (w *writer) withServerFields(k Kind) {
	server := map[string]any{
		"uid": "u", "resourceVersion": "7", "generation": int64(2), "creationTimestamp": "2026-01-01T00:00:00Z",
	}
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
	trace := map[string]any{}
	w.finished = func(step *Step, object any) any {
		object = inner(step, object)
		// Each leaves a trace of its own: an updater whose fields are gone has no entry.
		trace[step.Manager] = "x"
		return withMetadata(object, map[string]any{"labels": copied(trace)})
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

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// afterClientSideApply has kubectl apply server-side to what it applied client-side before.
func (w *writer) afterClientSideApply(k Kind) {
	w.managers = []string{"kubectl", "kubectl", "m1"}
	w.prepared = func(step *Step, number int) {
		if number == 0 {
			step.Operation, step.Manager = "update", "kubectl-client-side-apply"
		}
	}
	w.finished = func(step *Step, object any) any {
		object = k.identify(object)
		annotations := map[string]any{}
		metadata := object.(map[string]any)["metadata"].(map[string]any)
		if given, ok := metadata["annotations"].(map[string]any); ok {
			annotations = given
		}
		delete(annotations, lastApplied)
		if step.Operation == "update" {
			annotations[lastApplied] = text(object) + "\n"
			metadata["annotations"] = annotations
		}
		return object
	}
}
