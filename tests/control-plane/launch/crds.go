package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

// documentBreak is the line that parts the documents of a YAML file.
var documentBreak = regexp.MustCompile(`(?m)^---([ \t].*)?\r?$`)

// definition is what the launcher reads of a CustomResourceDefinition.
type definition struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`

	file     string
	document []byte
}

// readDefinitions reads every CRD of a folder's .yaml, .yml and .json files, in the order of their names.
func readDefinitions(folder string) ([]definition, error) {
	var definitions []definition
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		path := filepath.Join(folder, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parsed, err := parseDefinitions(path, content)
		if err != nil {
			return nil, err
		}
		definitions = append(definitions, parsed...)
	}
	if len(definitions) == 0 {
		return nil, fmt.Errorf("%s: no CustomResourceDefinition in it", folder)
	}
	return definitions, nil
}

func parseDefinitions(path string, content []byte) ([]definition, error) {
	var definitions []definition
	for _, text := range documentBreak.Split(string(content), -1) {
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if string(asJSON) == "null" {
			continue // Only comments.
		}
		d := definition{file: path, document: asJSON}
		if err := json.Unmarshal(asJSON, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if d.Kind != "CustomResourceDefinition" || d.Metadata.Name == "" {
			return nil, fmt.Errorf("%s: kind %q, name %q: a named CustomResourceDefinition is expected", path, d.Kind, d.Metadata.Name)
		}
		definitions = append(definitions, d)
	}
	return definitions, nil
}

// applyDefinitions applies all of them, and then waits until the server serves them.
func applyDefinitions(ctx context.Context, c *client, definitions []definition) error {
	for _, d := range definitions {
		if err := c.apply(ctx, crdPath+d.Metadata.Name, d.document); err != nil {
			return fmt.Errorf("%s: %s: %w", d.file, d.Metadata.Name, err)
		}
	}
	for _, d := range definitions {
		if err := c.waitFor(ctx, crdPath+d.Metadata.Name, established); err != nil {
			return fmt.Errorf("%s: %s: %w", d.file, d.Metadata.Name, err)
		}
		for _, version := range d.Spec.Versions {
			if !version.Served {
				continue
			}
			path := fmt.Sprintf("/apis/%s/%s/%s?limit=1", d.Spec.Group, version.Name, d.Spec.Names.Plural)
			if err := c.waitFor(ctx, path, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// established reads the conditions of a CRD. Names that another one has already taken never get better by waiting.
func established(status int, body []byte) (bool, error) {
	var d definition
	if found, _ := found(status, body); !found || json.Unmarshal(body, &d) != nil {
		return false, nil
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == "NamesAccepted" && condition.Status == "False" {
			return false, errors.New(condition.Message)
		}
	}
	for _, condition := range d.Status.Conditions {
		if condition.Type == "Established" && condition.Status == "True" {
			return true, nil
		}
	}
	return false, nil
}
