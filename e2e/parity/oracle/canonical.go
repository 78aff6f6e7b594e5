package main

import (
	"encoding/json"
	"regexp"
	"sort"
	"strings"
)

// Canonical text: two results that differ only in what upstream leaves to
// chance have the same. The rules are in the vectors' README, "Canonical comparison".

// detail says how much of an object is compared.
type detail int

const (
	content  detail = iota // without versions and generated names
	versions               // with them: the stand-in API server's own doing
)

func canonicalWrites(writes []Write, d detail) string {
	texts := make([]string, len(writes))
	for i, w := range writes {
		texts[i] = jsonText(map[string]any{
			"verb": w.Verb, "resource": w.Resource, "namespace": w.Namespace,
			"name": d.name(w.Name), "generateName": w.GenerateName,
			"assignedName": d.name(w.AssignedName), "failed": d.name(w.Failed),
			"object": canonicalObject(w.Object, d),
		})
	}
	sort.Strings(texts)
	return strings.Join(texts, "\n")
}

func canonicalNotices(notices []Notice) string {
	texts := make([]string, len(notices))
	for i, n := range notices {
		texts[i] = jsonText([]string{n.Type, n.Reason, canonicalText(n.Message), n.On})
	}
	sort.Strings(texts)
	return strings.Join(texts, "\n")
}

func canonicalErrors(errors []string) string {
	texts := make([]string, len(errors))
	for i, message := range errors {
		texts[i] = content.name(message)
	}
	sort.Strings(texts)
	return strings.Join(texts, "\n")
}

func canonicalEnd(end End, d detail) string {
	texts := make([]string, len(end.EndpointSlices))
	for i, slice := range end.EndpointSlices {
		texts[i] = jsonText(canonicalObject(slice, d))
	}
	sort.Strings(texts)
	texts = append(texts, jsonText(canonicalObject(end.Endpoints, d)))
	return strings.Join(texts, "\n")
}

// canonicalText frees the order of the errors upstream joins as "[a, b]".
func canonicalText(message string) string {
	message = content.name(message)
	start := strings.Index(message, "[")
	if start < 0 || !strings.HasSuffix(message, "]") {
		return message
	}
	joined := strings.Split(message[start+1:len(message)-1], ", ")
	sort.Strings(joined)
	return message[:start] + "[" + strings.Join(joined, ", ") + "]"
}

// canonicalObject is nil for no object.
func canonicalObject(raw json.RawMessage, d detail) map[string]any {
	var o map[string]any
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		panic(err) // From our own output, or from a vector that was just decoded.
	}
	if o == nil {
		return nil
	}
	if metadata, ok := o["metadata"].(map[string]any); ok && d == content {
		for _, name := range []string{"resourceVersion", "uid", "generation"} {
			delete(metadata, name)
		}
		if name, ok := metadata["name"].(string); ok {
			metadata["name"] = d.name(name)
		}
	}
	dropEmptyLists(o)
	sortLists(o, "endpoints", "ports")
	if subsets, ok := o["subsets"].([]any); ok {
		for _, subset := range subsets {
			sortLists(subset.(map[string]any), "addresses", "notReadyAddresses", "ports")
		}
		sortLists(o, "subsets")
	}
	return o
}

// dropEmptyLists: missing and empty lists, labels and annotations mean the
// same. Other empty structs stay, they are pointers upstream.
func dropEmptyLists(o map[string]any) {
	for name, value := range o {
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				delete(o, name)
			}
			for _, item := range v {
				if inner, ok := item.(map[string]any); ok {
					dropEmptyLists(inner)
				}
			}
		case map[string]any:
			if len(v) == 0 && (name == "labels" || name == "annotations") {
				delete(o, name)
			}
			dropEmptyLists(v)
		}
	}
}

func sortLists(o map[string]any, names ...string) {
	for _, name := range names {
		list, ok := o[name].([]any)
		if !ok {
			continue
		}
		texts := make(map[int]string, len(list))
		order := make([]int, len(list))
		for i, item := range list {
			texts[i], order[i] = jsonText(item), i
		}
		sort.Slice(order, func(a, b int) bool { return texts[order[a]] < texts[order[b]] })
		sorted := make([]any, len(list))
		for i, from := range order {
			sorted[i] = list[from]
		}
		o[name] = sorted
	}
}

var generatedName = regexp.MustCompile(`gen[0-9]{2,}\b`)

// name hides which of the generated names it is.
func (d detail) name(name string) string {
	if d == versions || !strings.Contains(name, "gen") {
		return name
	}
	return generatedName.ReplaceAllString(name, "gen*")
}

func jsonText(value any) string { return string(compact(value)) }
