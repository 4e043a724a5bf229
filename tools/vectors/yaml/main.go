// Command yaml writes what kubectl makes of YAML texts: lines of JSON, `{"text", "documents"}` where each document is
// `{"json"}` or `{"refused"}`.
//
//	go run ./yaml | gzip -9n > ../../src/manifest/yaml/documents.jsonl.gz
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strings"

	reader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	seed      = 1
	generated = 1000
)

type document struct {
	JSON    json.RawMessage `json:"json,omitempty"`
	Refused bool            `json:"refused,omitempty"`
}

type line struct {
	Text      string     `json:"text"`
	Documents []document `json:"documents"`
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	seen := map[string]bool{}
	for _, text := range append(written, texts()...) {
		if seen[text] {
			continue
		}
		seen[text] = true
		if err := encoder.Encode(line{text, documents(text)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// documents splits a text as kubectl does, and reads each part.
func documents(text string) []document {
	found := []document{}
	parts := reader.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		part, err := parts.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return append(found, document{Refused: true})
		}
		if read := one(part); read != nil {
			found = append(found, *read)
		}
	}
}

// one reads a document; one without content is none.
func one(text []byte) (read *document) {
	defer func() {
		// what the library panics on it does not read
		if recover() != nil {
			read = &document{Refused: true}
		}
	}()
	value, err := yaml.YAMLToJSON(text)
	if err != nil {
		return &document{Refused: true}
	}
	if bytes.Equal(value, []byte("null")) {
		return nil
	}
	return &document{JSON: value}
}

// texts are documents put together by chance from what people write in manifests.
func texts() []string {
	dice := rand.New(rand.NewSource(seed))
	made := make([]string, 0, generated)
	for range generated {
		w := writer{dice: dice}
		var text strings.Builder
		if dice.Intn(12) == 0 {
			text.WriteString("# first\n---\n")
		}
		for count := 1 + dice.Intn(2); count > 0; count-- {
			w.node(&text, 0, true)
			if count > 1 {
				text.WriteString("---\n")
			}
			w.anchors = nil
		}
		whole := text.String()
		switch dice.Intn(15) {
		case 0:
			whole = strings.ReplaceAll(whole, "\n", "\r\n")
		case 1:
			whole = "\ufeff" + whole
		case 2:
			whole = strings.TrimSuffix(whole, "\n")
		}
		made = append(made, whole)
	}
	return made
}

type writer struct {
	dice    *rand.Rand
	anchors []string
	names   int
	keys    int
}

func (w *writer) pick(from []string) string { return from[w.dice.Intn(len(from))] }

// node writes a block node; the text ends with a line end. A map or list begins on a line of its own.
func (w *writer) node(out *strings.Builder, depth int, root bool) {
	indent := strings.Repeat("  ", depth)
	kind := w.dice.Intn(10)
	if depth > 3 {
		kind = 9
	}
	switch {
	case root || kind < 4:
		if !root {
			out.WriteString(w.anchor() + "\n")
		}
		for count := 1 + w.dice.Intn(4); count > 0; count-- {
			if w.dice.Intn(9) == 0 {
				out.WriteString(indent + "# why\n")
			}
			if w.dice.Intn(30) == 0 && len(w.anchors) > 0 {
				out.WriteString(indent + "<<: *" + w.pick(w.anchors) + "\n")
				continue
			}
			out.WriteString(indent + w.key() + ":")
			w.node(out, depth+1, false)
		}
	case kind < 6:
		out.WriteString(w.anchor() + "\n")
		for count := 1 + w.dice.Intn(3); count > 0; count-- {
			out.WriteString(indent + "-")
			w.inline(out)
		}
	case kind == 6:
		out.WriteString(" " + w.pick(blocks) + "\n")
		for count := 1 + w.dice.Intn(3); count > 0; count-- {
			out.WriteString(indent + w.pick(prose) + "\n")
		}
		if w.dice.Intn(3) == 0 {
			out.WriteString("\n")
		}
	default:
		w.inline(out)
	}
}

// inline writes a node that stays on its line.
func (w *writer) inline(out *strings.Builder) {
	out.WriteString(" ")
	switch w.dice.Intn(8) {
	case 0:
		items := make([]string, w.dice.Intn(4))
		for index := range items {
			items[index] = w.scalar()
		}
		out.WriteString("[" + strings.Join(items, w.pick([]string{", ", ","})) + "]")
	case 1:
		items := make([]string, w.dice.Intn(3))
		for index := range items {
			items[index] = w.key() + ": " + w.scalar()
		}
		out.WriteString("{" + strings.Join(items, ", ") + "}")
	case 2:
		if len(w.anchors) > 0 {
			out.WriteString("*" + w.pick(w.anchors))
		} else {
			out.WriteString(w.scalar())
		}
	default:
		out.WriteString(strings.TrimPrefix(w.anchor()+" ", " ") + w.scalar())
	}
	if w.dice.Intn(10) == 0 {
		out.WriteString(w.pick([]string{"  # why", " #", "#no comment"}))
	}
	out.WriteString("\n")
}

func (w *writer) anchor() string {
	if w.dice.Intn(8) != 0 {
		return ""
	}
	w.names++
	name := fmt.Sprintf("a%d", w.names)
	w.anchors = append(w.anchors, name)
	return " &" + name
}

func (w *writer) key() string {
	switch w.dice.Intn(25) {
	case 0:
		return w.scalar()
	case 1:
		return w.pick(keys)
	default:
		w.keys++
		return fmt.Sprintf(w.pick(countedKeys), w.keys)
	}
}

func (w *writer) scalar() string {
	if w.dice.Intn(60) == 0 {
		return w.pick(traps)
	}
	return w.pick(scalars)
}
