package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// draw makes the cases: half on synthetic schemas, a quarter on kinds, a quarter through field managers.
func draw(count int, seed uint64, schemas []synthetic) ([]*Case, int) {
	var cases []*Case
	dropped := 0
	var deck []Kind
	for _, kind := range kinds {
		deck = append(deck, slices.Repeat([]Kind{kind}, kind.weight)...)
	}
	for number := 0; len(cases) < count; number++ {
		r := rand.New(rand.NewPCG(seed, uint64(number)))
		var c *Case
		switch number % 4 {
		case 0, 2:
			c = syntheticCase(r, schemas[number/2%len(schemas)])
		case 1:
			c = updaterCase(r, deck[number/4%len(deck)])
		case 3:
			c = managerCase(r, deck[number/4%len(deck)])
		}
		if c == nil {
			dropped++
			continue
		}
		c.Name = fmt.Sprintf("%s %d", c.family(), number)
		cases = append(cases, c)
	}
	return cases, dropped
}

func syntheticCase(r *rand.Rand, s synthetic) *Case {
	kind := s.parser.Type("type")
	c := &Case{Schema: s.name, Type: "type", Level: "updater"}
	w := &writer{pool: newPool(r, kind.Schema, false), kind: kind, versions: []string{"v1"}, spoils: 8}
	if w.chance(10) {
		w.inTwoVersions()
	}
	if s.name == "schema-change" {
		w.changing(s.parser)
		return w.finish(c, func() engine { return newUpdater(kind).withTypes(s.parser) })
	}
	return w.finish(c, func() engine { return newUpdater(kind) })
}

// inTwoVersions has writes in two versions of the kind, the first of which may end.
func (w *writer) inTwoVersions() {
	w.versions = []string{"v1", "v2"}
	end := 1 + w.IntN(6)
	w.prepared = func(step *Step, number int) {
		if number == end {
			step.RemovedVersion, step.Version, w.versions = "v1", "v2", []string{"v2"}
		}
	}
}

// changing has the schema change under the object once, as that of a custom kind does.
func (w *writer) changing(parser *typed.Parser) {
	at := 1 + w.IntN(3)
	w.prepared = func(step *Step, number int) {
		if number == at {
			step.Type = "changed"
			w.kind = parser.Type("changed")
		}
	}
}

func updaterCase(r *rand.Rand, k Kind) *Case {
	kind := k.parseable()
	c := &Case{Schema: "kubernetes", Type: k.record(), Level: "updater"}
	w := &writer{pool: newPool(r, kind.Schema, true), kind: kind, versions: []string{k.apiVersion()}, spoils: 5}
	w.finished = func(_ *Step, object any) any { return k.identify(object) }
	return w.finish(c, func() engine { return newUpdater(kind) })
}

// writer thinks up the steps of one case.
type writer struct {
	*pool
	kind     typed.ParseableType
	versions []string
	managers []string
	// How many of a hundred writes are made wrong.
	spoils int
	// Steps have times.
	timed bool
	// Every write starts from the live object.
	fromLive bool
	// How many steps; none given: three to eight.
	length int
	// Says more about a step before its object is drawn.
	prepared func(*Step, int)
	// Completes an object.
	finished func(*Step, any) any
	history  []*Step
}

func (w *writer) finish(c *Case, fresh func() engine) (result *Case) {
	// Upstream panics on some objects that no server would let through: no answer, no case.
	defer func() {
		if recover() != nil {
			result = nil
		}
	}()
	if w.managers == nil {
		w.managers = []string{"m1", "m2", "m3", "m4"}[:2+w.IntN(3)]
	}
	if w.length == 0 {
		w.length = 3 + w.IntN(6)
	}
	e := fresh()
	for number := range w.length {
		step := w.step(number, e.live())
		step.Expect = e.step(step)
		if refused := step.Expect.Error; refused != nil && refused.Kind == "invalid" && !repeats(e, step) {
			return nil
		}
		w.history = append(w.history, step)
	}
	c.Steps = w.history
	for range 3 {
		again := fresh()
		for _, step := range c.Steps {
			if text(again.step(step)) != text(step.Expect) {
				return nil
			}
		}
	}
	shorten(c)
	return c
}

// repeats tells whether a refusal is the same every time: upstream stops at the first of several reasons, in an order
// that differs from run to run. Many tries, so that the same seed drops the same cases.
func repeats(e engine, step *Step) bool {
	for range 200 {
		if text(e.step(step)) != text(step.Expect) {
			return false
		}
	}
	return true
}

// shorten leaves out what a step did not change.
func shorten(c *Case) {
	object, managed := "", ""
	for _, step := range c.Steps {
		if step.Expect.Object != nil {
			if now := text(*step.Expect.Object); now == object {
				step.Expect.Object = nil
			} else {
				object = now
			}
		}
		if step.Expect.Managed != nil {
			if now := text(*step.Expect.Managed); now == managed {
				step.Expect.Managed = nil
			} else {
				managed = now
			}
		}
	}
}

var operations = []string{
	"apply", "apply", "apply", "apply", "apply", "force", "force", "update", "update", "update",
}

func (w *writer) step(number int, live any) *Step {
	step := &Step{
		Operation: pick(w.pool, operations),
		Manager:   pick(w.pool, w.managers),
		Version:   pick(w.pool, w.versions),
	}
	if w.timed {
		step.Time = start.Add(time.Duration(number+1) * time.Second).Format(time.RFC3339)
	}
	if w.prepared != nil {
		w.prepared(step, number)
	}
	ref := w.kind.TypeRef
	object := w.derive(step, copied(live), ref)
	if w.chance(w.spoils) && (step.Operation != "update" || w.spoils > 5) {
		object = w.spoil(object, ref)
	}
	if w.finished != nil {
		object = w.finished(step, object)
	}
	step.Object = object
	return step
}

// derive starts from an object of the case as often as from nothing.
func (w *writer) derive(step *Step, live any, ref schema.TypeRef) any {
	var own, others []any
	for _, earlier := range w.history {
		if earlier.Manager == step.Manager && earlier.Operation != "update" {
			own = append(own, earlier.Object)
		} else {
			others = append(others, earlier.Object)
		}
	}
	var base any
	choice := w.IntN(100)
	switch {
	case w.fromLive && live != nil:
		return w.change(live, ref, copied(live))
	case step.Operation == "update" && live != nil && choice < 75:
		base = live
	case step.Operation != "update" && len(own) > 0 && choice < 45:
		base = copied(own[len(own)-1])
	case len(others) > 0 && choice < 65:
		base = copied(pick(w.pool, others))
	default:
		return w.object(ref)
	}
	for range w.IntN(3) + 1 {
		base = w.change(base, ref, copied(live))
	}
	if w.chance(25) {
		base = w.takeOver(base, live)
	}
	return base
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
