package main

import (
	"encoding/json"
	"errors"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// engine is one object and what upstream makes of writes to it.
type engine interface {
	live() any
	step(*Step) *Expect
}

// sameInEveryVersion converts as custom resources do that have no webhook.
type sameInEveryVersion struct {
	// The version that is served no more.
	removed fieldpath.APIVersion
}

var errRemoved = errors.New("version is served no more")

func (s *sameInEveryVersion) Convert(object *typed.TypedValue, to fieldpath.APIVersion) (*typed.TypedValue, error) {
	if to == s.removed {
		return object, errRemoved
	}
	return object, nil
}

func (*sameInEveryVersion) IsMissingVersionError(err error) bool { return errors.Is(err, errRemoved) }

// updater drives merge.Updater, with the managers known by what field managers know them by.
type updater struct {
	kind     typed.ParseableType
	object   *typed.TypedValue
	managed  fieldpath.ManagedFields
	versions *sameInEveryVersion
	merge    merge.Updater
	// The types that a step may change to.
	types *typed.Parser
}

func newUpdater(kind typed.ParseableType) *updater {
	object, err := kind.FromUnstructured(nil)
	if err != nil {
		panic(err)
	}
	versions := &sameInEveryVersion{}
	return &updater{
		kind: kind, object: object, managed: fieldpath.ManagedFields{},
		versions: versions, merge: merge.Updater{Converter: versions},
	}
}

func (u *updater) withTypes(types *typed.Parser) *updater {
	u.types = types
	return u
}

func (u *updater) live() any { return u.object.AsValue().Unstructured() }

func (u *updater) step(step *Step) *Expect {
	if step.RemovedVersion != "" {
		u.versions.removed = fieldpath.APIVersion(step.RemovedVersion)
	}
	if step.Type != "" {
		u.kind = u.types.Type(step.Type)
		object, err := u.kind.FromUnstructured(u.live(), typed.AllowDuplicates)
		if err != nil {
			panic(err)
		}
		u.object = object
	}
	object, managed, err := u.write(step)
	if err != nil {
		return &Expect{Error: updaterError(err)}
	}
	if object != nil {
		u.object = object
	}
	u.managed = managed
	value, entries := copied(u.live()), u.entries()
	return &Expect{Object: &value, Managed: &entries}
}

func (u *updater) write(step *Step) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	version, manager := fieldpath.APIVersion(step.Version), identifier(step)
	managed := fieldpath.ManagedFields{}
	for name, set := range u.managed {
		managed[name] = set
	}
	if step.Operation == "update" {
		object, err := u.kind.FromUnstructured(copied(step.Object), typed.AllowDuplicates)
		if err != nil {
			return nil, nil, err
		}
		return u.merge.Update(u.object, object, version, managed, manager)
	}
	object, err := u.kind.FromUnstructured(copied(step.Object))
	if err != nil {
		return nil, nil, err
	}
	return u.merge.Apply(u.object, object, version, managed, manager, step.Operation == "force")
}

// identifier: an applier is one manager in all versions, an updater one in each.
func identifier(step *Step) string {
	entry := metav1.ManagedFieldsEntry{Manager: step.Manager, Operation: metav1.ManagedFieldsOperationApply}
	if step.Operation == "update" {
		entry.Operation, entry.APIVersion = metav1.ManagedFieldsOperationUpdate, step.Version
	}
	return text(entry)
}

func entryOf(identifier string) metav1.ManagedFieldsEntry {
	var entry metav1.ManagedFieldsEntry
	if err := json.Unmarshal([]byte(identifier), &entry); err != nil {
		panic(err)
	}
	return entry
}

func (u *updater) entries() []*Entry {
	entries := []*Entry{}
	for name, set := range u.managed {
		fields, err := set.Set().ToJSON()
		if err != nil {
			panic(err)
		}
		entry := entryOf(name)
		entries = append(entries, &Entry{
			Manager: entry.Manager, Operation: string(entry.Operation),
			APIVersion: string(set.APIVersion()), FieldsV1: fields,
		})
	}
	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		return text([]string{a.Operation, a.Manager, a.APIVersion}) < text([]string{b.Operation, b.Manager, b.APIVersion})
	})
	return entries
}

func updaterError(err error) *Error {
	var conflicts merge.Conflicts
	if !errors.As(err, &conflicts) {
		return invalid(err)
	}
	// Upstream walks a map of managers: its order is no promise.
	sort.SliceStable(conflicts, func(i, j int) bool { return conflicts[i].Manager < conflicts[j].Manager })
	result := &Error{Kind: "conflict"}
	for _, conflict := range conflicts {
		entry := entryOf(conflict.Manager)
		message := "conflict with " + text(entry.Manager)
		if entry.APIVersion != "" {
			message += " using " + entry.APIVersion
		}
		result.Conflicts = append(result.Conflicts, Conflict{entry.Manager, conflict.Path.String(), message})
	}
	return result
}

// invalid has the reasons in one order: upstream walks a map of fields.
func invalid(err error) *Error {
	lines := strings.Split(err.Error(), "\n")
	sort.Strings(lines[1:])
	return &Error{Kind: "invalid", Message: strings.Join(lines, "\n")}
}
