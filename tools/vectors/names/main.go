// Command names writes the names of Go types that a server's error messages tell and OpenAPI documents do not:
// lines `T <definition>.<field> <type>` where a field's type has a name of its own, and
// `E <definition>.<field> <structs>` where a field is embedded from other structs.
//
//	go run ./names > ../../crates/sandbox/schema/go-names.txt
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
)

type names struct {
	seen  map[reflect.Type]bool
	lines []string
}

func main() {
	found := names{seen: map[reflect.Type]bool{}}
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		preview := strings.Contains(kind.Version, "alpha") || strings.Contains(kind.Version, "beta")
		if !preview && kind.Version != "__internal" {
			found.structs(of)
		}
	}
	sort.Strings(found.lines)
	for _, line := range found.lines {
		fmt.Println(line)
	}
}

// structs reads a struct, and every struct below it, once.
func (n *names) structs(of reflect.Type) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || n.seen[of] || !strings.HasPrefix(of.PkgPath(), "k8s.io/") {
		return
	}
	n.seen[of] = true
	switch of.Name() {
	case "Quantity", "Time", "MicroTime", "RawExtension":
		return
	}
	n.fields(of, of, nil)
}

// fields reads the fields of a struct that is embedded in root.
func (n *names) fields(root, of reflect.Type, embedded []string) {
	for index := range of.NumField() {
		field := of.Field(index)
		tag := strings.Split(field.Tag.Get("json"), ",")
		switch {
		case field.PkgPath != "" || tag[0] == "-":
		case tag[0] == "" && field.Anonymous, len(tag) > 1 && tag[1] == "inline":
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			n.fields(root, inner, append(embedded[:len(embedded):len(embedded)], field.Name))
		case tag[0] != "":
			place := definition(root) + "." + tag[0]
			if len(embedded) > 0 && embedded[0] != "TypeMeta" {
				n.lines = append(n.lines, "E "+place+" "+strings.Join(embedded, "."))
			}
			if isNamed(field.Type) {
				n.lines = append(n.lines, "T "+place+" "+strings.TrimPrefix(field.Type.String(), "*"))
			}
			n.structs(field.Type)
		}
	}
}

// isNamed says whether a type has a name that the OpenAPI type and format do not tell.
func isNamed(of reflect.Type) bool {
	switch of.Kind() {
	case reflect.Pointer:
		return isNamed(of.Elem())
	case reflect.Struct:
		return false
	case reflect.Slice:
		return of.Name() != "" || isNamed(of.Elem())
	case reflect.Map:
		return of.Name() != "" || of.Key().PkgPath() != "" || isNamed(of.Elem())
	default:
		return of.PkgPath() != ""
	}
}

// definition names a type as OpenAPI documents do.
func definition(of reflect.Type) string {
	return "io.k8s" + strings.TrimPrefix(strings.ReplaceAll(of.PkgPath(), "/", "."), "k8s.io") + "." + of.Name()
}
