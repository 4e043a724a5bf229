// Command fields writes how the types of the built-in kinds write their fields: which keep a zero that
// was said, and which are written though nothing was said. OpenAPI documents do not tell.
//
//	go run ./fields | gzip -9n > ../../crates/sandbox/schema/fields-1.36.json.gz
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// definition is what one type says of its fields.
type definition struct {
	// Kept fields are pointers: a zero that was said stays.
	Kept []string `json:"kept,omitempty"`
	// Written fields are there though nothing was said, as this value.
	Written map[string]any `json:"written,omitempty"`
	// Dropped structs are left out when nothing is in them.
	Dropped []string `json:"dropped,omitempty"`
}

// opaque types have a JSON form of their own.
var opaque = map[reflect.Type]any{
	reflect.TypeOf(resource.Quantity{}):  "0",
	reflect.TypeOf(intstr.IntOrString{}): 0,
	reflect.TypeOf(metav1.Time{}):        nil,
	reflect.TypeOf(metav1.MicroTime{}):   nil,
	reflect.TypeOf(metav1.Duration{}):    "0s",
}

func name(of reflect.Type) string {
	parts := strings.SplitN(of.PkgPath(), "/", 2)
	hosts := strings.Split(parts[0], ".")
	for left, right := 0, len(hosts)-1; left < right; left, right = left+1, right-1 {
		hosts[left], hosts[right] = hosts[right], hosts[left]
	}
	return strings.Join(hosts, ".") + "." + strings.ReplaceAll(parts[1], "/", ".") + "." + of.Name()
}

// zero is what a type writes of its zero, and is that a struct.
func zero(of reflect.Type) any {
	if value, ok := opaque[of]; ok {
		return value
	}
	switch of.Kind() {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Struct:
		return map[string]any{}
	case reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		return nil
	default:
		return 0
	}
}

func isMarshaler(of reflect.Type) bool {
	marshaler := reflect.TypeOf((*json.Marshaler)(nil)).Elem()
	return of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler)
}

func visit(of reflect.Type, found map[string]*definition) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || isMarshaler(of) {
		return
	}
	key := name(of)
	if _, ok := found[key]; ok {
		return
	}
	into := &definition{Written: map[string]any{}}
	found[key] = into
	fields(of, into, found)
}

func fields(of reflect.Type, into *definition, found map[string]*definition) {
	for index := range of.NumField() {
		field := of.Field(index)
		tag := strings.Split(field.Tag.Get("json"), ",")
		options := strings.Join(tag[1:], " ")
		if strings.Contains(options, "inline") || field.Anonymous && tag[0] == "" {
			if field.Type != reflect.TypeOf(metav1.TypeMeta{}) {
				fields(field.Type, into, found)
			}
			continue
		}
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		visit(field.Type, found)
		isStruct := field.Type.Kind() == reflect.Struct
		switch {
		case strings.Contains(options, "omitzero") && isStruct:
			into.Dropped = append(into.Dropped, tag[0])
		case field.Type.Kind() == reflect.Pointer:
			into.Kept = append(into.Kept, tag[0])
			if !strings.Contains(options, "omitempty") {
				into.Written[tag[0]] = nil
			}
		case !strings.Contains(options, "omitempty") || isStruct:
			if field.Type.Name() == "RawExtension" || field.Type.Name() == "FieldsV1" {
				into.Written[tag[0]] = nil
			} else {
				into.Written[tag[0]] = zero(field.Type)
			}
		}
	}
}

func main() {
	found := map[string]*definition{}
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		if kind.Version != "__internal" {
			visit(of, found)
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	var out bytes.Buffer
	out.WriteString("{\n")
	for at, name := range names {
		line, err := json.Marshal(found[name])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		comma := ","
		if at == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&out, "%q:%s%s\n", name, line, comma)
	}
	out.WriteString("}\n")
	os.Stdout.Write(out.Bytes())
}
