package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"
)

//go:embed schemas.yaml
var schemasText string

type synthetic struct {
	name   string
	parser *typed.Parser
	record map[string]any
}

// syntheticSchemas reads the schemas twice: as upstream does, and as JSON for the record.
func syntheticSchemas() ([]synthetic, error) {
	var schemas []synthetic
	for _, document := range strings.Split(schemasText, "\n---\n") {
		bytes, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return nil, err
		}
		record := map[string]any{}
		if err := json.Unmarshal(bytes, &record); err != nil {
			return nil, err
		}
		types, err := yaml.Marshal(map[string]any{"types": record["types"]})
		if err != nil {
			return nil, err
		}
		parser, err := typed.NewParser(typed.YAMLObject(types))
		if err != nil {
			return nil, fmt.Errorf("schema %v: %w", record["name"], err)
		}
		schemas = append(schemas, synthetic{record["name"].(string), parser, record})
	}
	return schemas, nil
}
