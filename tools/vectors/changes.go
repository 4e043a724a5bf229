package main

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// place is one value inside an object, and how to put another there.
type place struct {
	value  any
	ref    schema.TypeRef
	depth  int
	set    func(any)
	remove func()
	// The field or keys that lead here, to find the same place in another object.
	path string
	// The fields that name this list item: rarely touched.
	keys []string
	key  bool
}

// places lists the values inside an object in the order of their paths.
func (p *pool) places(root *any, ref schema.TypeRef) []place {
	var found []place
	var walk func(place)
	walk = func(at place) {
		found = append(found, at)
		atom, _ := p.schema.Resolve(at.ref)
		switch value := at.value.(type) {
		case map[string]any:
			for _, key := range sorted(value) {
				inner := schema.TypeRef{}
				if atom.Map != nil {
					inner = atom.Map.ElementType
					if field, ok := atom.Map.FindField(key); ok {
						inner = field.Type
					}
				}
				walk(place{
					value: value[key], ref: inner, depth: at.depth + 1, set: func(v any) { value[key] = v },
					remove: func() { delete(value, key) }, path: at.path + "." + text(key), key: slices.Contains(at.keys, key),
				})
			}
		case []any:
			for i, item := range value {
				inner, key, keys := schema.TypeRef{}, any(i), []string(nil)
				if atom.List != nil {
					inner = atom.List.ElementType
					if atom.List.ElementRelationship == schema.Associative {
						key, keys = keysOf(atom.List, item), atom.List.Keys
					}
				}
				walk(place{
					value: item, ref: inner, depth: at.depth + 1, set: func(v any) { value[i] = v },
					remove: func() { at.set(without(value, i)) }, path: at.path + text(key), keys: keys,
				})
			}
		}
	}
	walk(place{value: *root, ref: ref, set: func(v any) { *root = v }, remove: func() {}})
	return found
}

// change makes one small difference, as a person or a controller would.
func (p *pool) change(object any, ref schema.TypeRef, live any) any {
	p.budget = 6
	places := p.places(&object, ref)
	at := pick(p, places)
	if p.wide {
		lists := slices.DeleteFunc(slices.Clone(places), func(at place) bool {
			_, list := at.value.([]any)
			return !list
		})
		if len(lists) > 0 && p.chance(60) {
			at, places = pick(p, lists), lists
		}
	}
	// The root is only ever added to or taken from.
	for range 3 {
		if at.depth < 2 && len(places) > 3 || at.key {
			at = pick(p, places)
		}
	}
	atom, _ := p.schema.Resolve(at.ref)
	switch value := at.value.(type) {
	case map[string]any:
		p.changeMap(at, value, atom)
	case []any:
		p.changeList(at, value, atom)
	default:
		if at.depth > 0 {
			p.changeScalar(at, live, ref)
		} else {
			at.set(p.object(ref))
		}
	}
	return object
}

func without(list []any, i int) []any { return append(append([]any{}, list[:i]...), list[i+1:]...) }

func (p *pool) changeMap(at place, value map[string]any, atom schema.Atom) {
	keys := slices.DeleteFunc(sorted(value), func(key string) bool { return slices.Contains(at.keys, key) })
	switch choice := p.IntN(10); {
	case choice < 4 || len(keys) == 0:
		if atom.Map != nil {
			for key, item := range p.mapping(atom.Map, at.depth).(map[string]any) {
				if _, ok := value[key]; !ok {
					value[key] = item
				}
			}
		}
	case choice < 7:
		delete(value, pick(p, keys))
	case choice < 8:
		value[pick(p, keys)] = nil
	case choice < 9 && at.depth > 0 && len(at.keys) == 0:
		at.set(map[string]any{})
	case at.depth > 0:
		at.remove()
	}
}

func (p *pool) changeList(at place, value []any, atom schema.Atom) {
	switch choice := p.IntN(10); {
	case choice < 3 || len(value) == 0:
		if atom.List == nil {
			return
		}
		item := p.item(atom.List, at.depth)
		for _, other := range value {
			keyed := atom.List.ElementRelationship == schema.Associative
			if keyed && text(keysOf(atom.List, other)) == text(keysOf(atom.List, item)) {
				return
			}
		}
		place := p.IntN(len(value) + 1)
		at.set(append(append(append([]any{}, value[:place]...), item), value[place:]...))
	case choice < 6:
		reordered := append([]any{}, value...)
		p.Shuffle(len(reordered), func(i, j int) { reordered[i], reordered[j] = reordered[j], reordered[i] })
		at.set(reordered)
	case choice < 8:
		i := p.IntN(len(value))
		at.set(without(value, i))
	case choice < 9:
		at.set([]any{})
	default:
		at.remove()
	}
}

func (p *pool) changeScalar(at place, live any, root schema.TypeRef) {
	switch choice := p.IntN(10); {
	case choice < 5:
		at.set(p.value(at.ref, at.depth))
	case choice < 8:
		at.remove()
	case choice < 9:
		at.set(nil)
	default:
		// The value that the object has already: owned together, or taken back.
		for _, other := range p.places(&live, root) {
			if other.path == at.path {
				at.set(copied(other.value))
			}
		}
	}
}

// takeOver adds something that the live object has and this one has not.
func (p *pool) takeOver(object, live any) any {
	mine, ok := object.(map[string]any)
	theirs, ok2 := live.(map[string]any)
	if !ok || !ok2 || len(theirs) == 0 {
		return object
	}
	p.adopt(mine, theirs)
	return object
}

func (p *pool) adopt(mine, theirs map[string]any) {
	keys := sorted(theirs)
	if len(keys) == 0 {
		return
	}
	key := pick(p, keys)
	inner, ok := theirs[key].(map[string]any)
	same, ok2 := mine[key].(map[string]any)
	if ok && ok2 {
		p.adopt(same, inner)
		return
	}
	mine[key] = copied(theirs[key])
}

// spoil makes an object that upstream refuses, mostly.
func (p *pool) spoil(object any, ref schema.TypeRef) any {
	places := p.places(&object, ref)
	for range 20 {
		at := pick(p, places)
		atom, _ := p.schema.Resolve(at.ref)
		switch value := at.value.(type) {
		case map[string]any:
			if atom.Map == nil || len(atom.Map.Fields) == 0 {
				continue
			}
			value["undeclared"] = p.free()
			return object
		case []any:
			if atom.List == nil || atom.List.ElementRelationship != schema.Associative || len(value) == 0 {
				continue
			}
			p.spoilList(at, value, atom.List)
			return object
		default:
			if at.depth == 0 || p.real && at.ref.NamedType != nil {
				continue
			}
			at.set(pick(p, []any{map[string]any{"a": "b"}, []any{"a"}, "text", int64(7), true}))
			return object
		}
	}
	return object
}

func (p *pool) spoilList(at place, value []any, list *schema.List) {
	item := copied(pick(p, value))
	if object, ok := item.(map[string]any); ok && len(list.Keys) > 0 {
		switch p.IntN(3) {
		case 0:
			delete(object, pick(p, list.Keys))
		case 1:
			object[pick(p, list.Keys)] = nil
		}
	}
	at.set(append(append([]any{}, value...), item))
}
