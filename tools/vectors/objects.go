package main

import (
	"math/rand/v2"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// pool draws values of a schema, from few names and values so that the objects of a case overlap.
type pool struct {
	*rand.Rand
	schema *schema.Schema
	// fields of each struct that this case uses: objects with all fields would never meet.
	fields  map[*schema.Map][]string
	strings []string
	names   []string
	budget  int
	real    bool
	// Long lists of many names, for the order that merging keeps.
	wide bool
}

var (
	plain = []string{"a", "b", "c"}
	many  = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
)

// Texts that must be escaped, or look like something else, in paths and in field sets.
var odd = []string{"a.b/c", `q"q`, "é", "<&>", "", "k:{}", "1", "true", "\\", "."}

func newPool(r *rand.Rand, s *schema.Schema, real bool) *pool {
	p := &pool{Rand: r, schema: s, fields: map[*schema.Map][]string{}, strings: plain, names: plain, real: real}
	if !real && p.chance(10) {
		p.names = []string{"a", odd[p.IntN(len(odd))], odd[p.IntN(len(odd))]}
		p.strings = p.names
	}
	if p.chance(20) {
		p.wide, p.names, p.strings = true, many, many
	}
	return p
}

func (p *pool) chance(percent int) bool { return p.IntN(100) < percent }

func pick[T any](p *pool, items []T) T { return items[p.IntN(len(items))] }

// object draws a whole object.
func (p *pool) object(ref schema.TypeRef) any {
	p.budget = 3 + p.IntN(14)
	if p.wide {
		p.budget += 10
	}
	return p.value(ref, 0)
}

func (p *pool) value(ref schema.TypeRef, depth int) any {
	atom, ok := p.schema.Resolve(ref)
	if !ok {
		return p.free()
	}
	switch {
	case atom.Scalar != nil && atom.Map != nil:
		return p.deduced(atom, depth)
	case atom.Map != nil:
		return p.mapping(atom.Map, depth)
	case atom.List != nil:
		return p.list(atom.List, depth)
	case atom.Scalar != nil:
		return p.scalar(ref, *atom.Scalar)
	}
	return p.free()
}

func (p *pool) scalar(ref schema.TypeRef, scalar schema.Scalar) any {
	p.budget--
	if ref.NamedType != nil {
		if values, ok := texts[*ref.NamedType]; ok {
			return pick(p, values)
		}
	}
	switch scalar {
	case schema.Numeric:
		if !p.real && p.chance(5) {
			return 1.5
		}
		if p.wide {
			return int64(p.IntN(8))
		}
		return int64(p.IntN(4))
	case schema.Boolean:
		return p.chance(50)
	case schema.Untyped:
		return p.free()
	}
	return pick(p, p.strings)
}

var texts = map[string][]any{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":   {"1", "2", "500m", int64(1)},
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": {int64(80), "http", "50%"},
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":       {"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":  {"2026-01-01T00:00:00.000000Z"},
}

// free is a scalar of any type.
func (p *pool) free() any {
	switch p.IntN(5) {
	case 0:
		return int64(p.IntN(3))
	case 1:
		return p.chance(50)
	default:
		return pick(p, p.strings)
	}
}

// deduced values may be anything: the shape is drawn, not given.
func (p *pool) deduced(atom schema.Atom, depth int) any {
	choice := p.IntN(10)
	if depth == 0 {
		choice = 9
	}
	switch {
	case depth > 4 || p.budget <= 0 || choice < 4:
		return p.scalar(schema.TypeRef{}, *atom.Scalar)
	case choice < 6:
		return p.list(atom.List, depth)
	default:
		return p.mapping(atom.Map, depth)
	}
}

func (p *pool) mapping(m *schema.Map, depth int) any {
	result := map[string]any{}
	for _, name := range p.pooled(m) {
		if p.budget <= 0 && depth > 0 || !p.chance(65) {
			continue
		}
		field, _ := m.FindField(name)
		if value, ok := p.field(field.Type, depth); ok {
			result[name] = value
		}
	}
	if m.ElementType != (schema.TypeRef{}) {
		for range p.IntN(4) {
			if value, ok := p.field(m.ElementType, depth); ok && p.budget > 0 {
				result[pick(p, p.names)] = value
			}
		}
	}
	return result
}

// field draws a value unless it would be too deep to mean anything.
func (p *pool) field(ref schema.TypeRef, depth int) (any, bool) {
	atom, _ := p.schema.Resolve(ref)
	if atom.Scalar == nil && depth > 9 {
		return nil, false
	}
	return p.value(ref, depth+1), true
}

func (p *pool) list(l *schema.List, depth int) any {
	result := []any{}
	seen := map[string]bool{}
	length := p.IntN(4)
	if p.wide {
		length += 3
	}
	for range length {
		if p.budget <= 0 && len(result) > 0 {
			break
		}
		item := p.item(l, depth)
		if l.ElementRelationship == schema.Associative {
			key := text(keysOf(l, item))
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		result = append(result, item)
	}
	return result
}

func (p *pool) item(l *schema.List, depth int) any {
	item := p.value(l.ElementType, depth+1)
	object, ok := item.(map[string]any)
	atom, _ := p.schema.Resolve(l.ElementType)
	if !ok || atom.Map == nil {
		return item
	}
	for _, key := range l.Keys {
		field, _ := atom.Map.FindField(key)
		if choice := p.IntN(10); field.Default != nil && choice < 5 {
			delete(object, key)
		} else if field.Default != nil && choice < 7 {
			object[key] = whole(field.Default)
		} else if field.Type != (schema.TypeRef{}) {
			object[key] = p.value(field.Type, depth+2)
		}
	}
	return item
}

func keysOf(l *schema.List, item any) []any {
	object, ok := item.(map[string]any)
	if !ok || len(l.Keys) == 0 {
		return []any{item}
	}
	keys := []any{}
	for _, key := range l.Keys {
		keys = append(keys, object[key])
	}
	return keys
}

// pooled names the fields of a struct that this case draws: all of a small one, few of a large one.
func (p *pool) pooled(m *schema.Map) []string {
	if names, ok := p.fields[m]; ok {
		return names
	}
	var candidates, names []string
	_, metadata := m.FindField("managedFields")
	_, whole := m.FindField("metadata")
	for _, field := range m.Fields {
		if p.real && (metadata && skipped[field.Name] || whole && (field.Name == "apiVersion" || field.Name == "kind")) {
			continue
		}
		names = append(names, field.Name)
		candidates = append(candidates, slices.Repeat([]string{field.Name}, p.weight(field))...)
	}
	if p.real && len(names) > 4 {
		names = nil
		for range 2 + p.IntN(3) {
			name := pick(p, candidates)
			candidates = slices.DeleteFunc(candidates, func(other string) bool { return other == name })
			names = append(names, name)
			if len(candidates) == 0 {
				break
			}
		}
		slices.Sort(names)
	}
	p.fields[m] = names
	return names
}

// Metadata that servers set, or the case itself.
var skipped = map[string]bool{
	"managedFields": true, "name": true, "namespace": true, "uid": true,
	"resourceVersion": true, "generation": true, "selfLink": true, "creationTimestamp": true, "generateName": true,
	"deletionTimestamp": true, "deletionGracePeriodSeconds": true,
}

// What people write, and where merging is more than replacing.
var favoured = map[string]bool{
	"metadata": true, "spec": true, "template": true, "jobTemplate": true, "containers": true, "ports": true,
	"env":          true,
	"volumeMounts": true, "volumes": true, "labels": true, "annotations": true, "selector": true, "replicas": true,
	"image": true, "data": true, "rules": true, "finalizers": true, "ownerReferences": true, "conditions": true,
	"status": true, "resources": true, "limits": true, "matchLabels": true, "taints": true,
}

func (p *pool) weight(field schema.StructField) int {
	if favoured[field.Name] {
		return 8
	}
	atom, _ := p.schema.Resolve(field.Type)
	if atom.Map != nil || atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		return 3
	}
	return 1
}

// whole has the numbers of a schema's YAML as those of an object.
func whole(value any) any {
	if number, ok := value.(int); ok {
		return int64(number)
	}
	return value
}
