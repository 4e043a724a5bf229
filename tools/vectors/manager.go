package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// manager drives the field managers of one object: one for the resource, one for each subresource.
type manager struct {
	kind     Kind
	object   *unstructured.Unstructured
	managers map[string]*managedfields.FieldManager
	now      time.Time
}

// start is far in the past: a time after it that upstream wrote is told from those of earlier steps.
var start = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

func newManager(kind Kind, resetFields map[string][][]string, live any) *manager {
	object := kind.empty()
	if live != nil {
		object = &unstructured.Unstructured{Object: copied(live).(map[string]any)}
	}
	m := &manager{kind: kind, object: object, managers: map[string]*managedfields.FieldManager{}, now: start}
	for _, subresource := range []string{"", "status"} {
		gvk := kind.gvk()
		filters := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{
			fieldpath.APIVersion(kind.apiVersion()): pathSet(resetFields[subresource]),
		})
		fieldManager, err := managedfields.NewDefaultFieldManager(
			converter, oneVersion{}, oneVersion{}, oneVersion{}, gvk, gvk.GroupVersion(), subresource, filters)
		if err != nil {
			panic(err)
		}
		m.managers[subresource] = fieldManager
	}
	return m
}

func pathSet(paths [][]string) *fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		parts := make([]any, len(path))
		for i, part := range path {
			parts[i] = part
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	return set
}

// oneVersion converts and defaults nothing: the cases stay in one version, and defaults are another's matter.
type oneVersion struct{}

func (oneVersion) Convert(_, _, _ any) error { return errors.New("not converted") }

func (oneVersion) ConvertToVersion(object runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return object, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, _, _ string) (string, string, error) {
	return "", "", errors.New("not converted")
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvk)
	return object, nil
}

func (m *manager) live() any {
	object := m.object.DeepCopy()
	object.SetManagedFields(nil)
	return object.Object
}

func (m *manager) step(step *Step) *Expect {
	m.now, _ = time.Parse(time.RFC3339, step.Time)
	object := &unstructured.Unstructured{Object: copied(step.Object).(map[string]any)}
	fields := m.managers[step.Subresource]
	var written runtime.Object
	var err error
	if step.Operation == "update" {
		written, err = fields.Update(m.object.DeepCopy(), object, step.Manager)
	} else {
		written, err = fields.Apply(m.object.DeepCopy(), object, step.Manager, step.Operation == "force")
	}
	if err != nil {
		return &Expect{Error: managerError(err)}
	}
	m.object = written.(*unstructured.Unstructured).DeepCopy()
	m.settleTimes()
	value, entries := m.live(), m.entries()
	return &Expect{Object: &value, Managed: &entries}
}

// settleTimes puts the step's time where upstream read the clock.
func (m *manager) settleTimes() {
	entries := m.object.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && entries[i].Time.Year() > start.Year() {
			entries[i].Time = &metav1.Time{Time: m.now}
		}
	}
	if len(entries) > 0 {
		m.object.SetManagedFields(entries)
	}
}

func (m *manager) entries() []*Entry {
	entries := []*Entry{}
	for _, entry := range m.object.GetManagedFields() {
		when := ""
		if entry.Time != nil {
			when = entry.Time.UTC().Format(time.RFC3339)
		}
		entries = append(entries, &Entry{
			entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource, when, entry.FieldsV1.Raw,
		})
	}
	return entries
}

func managerError(err error) *Error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Reason != metav1.StatusReasonConflict {
		return invalid(err)
	}
	causes := status.ErrStatus.Details.Causes
	sort.SliceStable(causes, func(i, j int) bool { return causes[i].Message < causes[j].Message })
	result := &Error{Kind: "conflict", Message: status.ErrStatus.Message}
	for _, cause := range causes {
		var name string
		if _, err := fmt.Sscanf(strings.TrimPrefix(cause.Message, "conflict with "), "%q", &name); err != nil {
			panic(err)
		}
		result.Conflicts = append(result.Conflicts, Conflict{name, cause.Field, cause.Message})
	}
	return result
}
