// Vectors writes cases of server-side apply with the answers that upstream's implementation gives.
//
//	go run . -cases 3200 -seed 1 -out ssa.jsonl.gz
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	cases := flag.Int("cases", 3200, "how many cases")
	seed := flag.Uint64("seed", 1, "the same seed gives the same cases")
	out := flag.String("out", "ssa.jsonl.gz", "the file to write; compressed when it ends in .gz")
	flag.Parse()
	if err := run(*cases, *seed, *out); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(count int, seed uint64, out string) error {
	schemas, err := syntheticSchemas()
	if err != nil {
		return err
	}
	cases, dropped := draw(count, seed, schemas)
	records := []any{map[string]any{"header": header(seed, len(schemas), cases)}}
	for _, schema := range schemas {
		records = append(records, map[string]any{"schema": schema.record})
	}
	for _, c := range cases {
		records = append(records, c)
	}
	lines, err := encode(records)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d cases, %d dropped for answers that differ from run to run\n", len(cases), dropped)
	if !strings.HasSuffix(out, ".gz") {
		return os.WriteFile(out, lines, 0o644)
	}
	// The zero header of gzip has no time and no name: the same lines are the same file.
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if _, err := writer.Write(lines); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, packed.Bytes(), 0o644)
}

func header(seed uint64, schemas int, cases []*Case) map[string]any {
	levels, families, steps := map[string]int{}, map[string]int{}, 0
	for _, c := range cases {
		levels[c.Level]++
		families[c.family()]++
		steps += len(c.Steps)
	}
	return map[string]any{
		"upstream": upstream(), "seed": seed, "schemas": schemas, "cases": len(cases), "steps": steps,
		"levels": levels, "families": families,
	}
}

// upstream names the modules that gave the answers, by the versions this program was built with.
func upstream() map[string]string {
	versions := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		switch module.Path {
		case "sigs.k8s.io/structured-merge-diff/v6", "k8s.io/apimachinery", "k8s.io/client-go":
			versions[module.Path] = module.Version
		}
	}
	return versions
}

func encode(records []any) ([]byte, error) {
	var buffer bytes.Buffer
	writer := bufio.NewWriter(&buffer)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for _, record := range records {
		if err := encoder.Encode(record); err != nil {
			return nil, err
		}
	}
	err := writer.Flush()
	return buffer.Bytes(), err
}
