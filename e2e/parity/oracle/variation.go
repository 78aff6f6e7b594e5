package main

import (
	"slices"
	"sort"
	"strings"
)

// markVariation compares all runs of a case and notes in the first one what
// was not equal in all of them, and what was nevertheless.
func markVariation(runs []*Expect) {
	first := runs[0]
	results := map[string]bool{}
	stable := summaries(first)
	second := secondResult(first)
	for _, r := range runs {
		results[result(r)] = true
		for name, text := range summaries(r) {
			if stable[name] != text {
				delete(stable, name)
			}
		}
		first.SecondSyncVaries = first.SecondSyncVaries || secondResult(r) != second
	}
	if len(results) == 1 {
		return
	}
	first.Nondeterministic = true
	first.Variants = len(results)
	for name := range stable {
		first.Stable = append(first.Stable, name)
	}
	sort.Strings(first.Stable)
}

// result is all that counts of a sync and what it left behind.
func result(e *Expect) string {
	return strings.Join([]string{
		canonicalWrites(e.Writes, content),
		canonicalNotices(e.Events),
		canonicalErrors(e.Errors),
		canonicalEnd(e.End, content),
	}, "\n--\n")
}

// secondResult covers the stale sync too: the recorded vectors do.
func secondResult(e *Expect) string {
	return staleResult(e) + "\n==\n" + strings.Join(secondParts(e), "\n--\n")
}

func staleResult(e *Expect) string {
	if e.StaleSync == nil {
		return ""
	}
	return strings.Join([]string{
		canonicalWrites(e.StaleSync.Writes, content),
		canonicalNotices(e.StaleSync.Events),
		canonicalErrors(e.StaleSync.Errors),
	}, "\n--\n")
}

func secondParts(e *Expect) []string {
	parts := []string{"", canonicalNotices(e.SecondSyncEvents), ""}
	if e.SecondSyncWrites != nil {
		parts[0] = canonicalWrites(*e.SecondSyncWrites, content)
	}
	if e.SecondSyncError != nil {
		parts[2] = canonicalText(*e.SecondSyncError)
	}
	return parts
}

// summaries are the views of a result that packing choices leave alone, by the
// names `stable` has for them.
func summaries(e *Expect) map[string]string {
	shape, union, unionWithHints := endViews(e.End)
	return map[string]string{
		"writeCounts":       writeCounts(e.Writes),
		"endShape":          shape,
		"endUnion":          union,
		"endUnionWithHints": unionWithHints,
		"events":            canonicalNotices(e.Events),
		"errors":            canonicalErrors(e.Errors),
	}
}

func writeCounts(writes []Write) string {
	counts := map[string]int{}
	for _, w := range writes {
		counts[w.Verb+" "+w.Resource]++
	}
	return jsonText(counts)
}

// endViews groups slices by address type, ports and labels, and gives for each
// group the slice sizes, all endpoints without hints, and all with hints.
func endViews(end End) (shape, union, unionWithHints string) {
	sizes := map[string][]int{}
	plain := map[string][]string{}
	hinted := map[string][]string{}
	for _, raw := range end.EndpointSlices {
		slice := canonicalObject(raw, content)
		metadata, _ := slice["metadata"].(map[string]any)
		group := jsonText([]any{slice["addressType"], slice["ports"], metadata["labels"]})
		endpoints, _ := slice["endpoints"].([]any)
		sizes[group] = append(sizes[group], len(endpoints))
		for _, e := range endpoints {
			hinted[group] = append(hinted[group], jsonText(e))
			endpoint := e.(map[string]any)
			delete(endpoint, "hints")
			plain[group] = append(plain[group], jsonText(endpoint))
		}
	}
	return viewText(sizes), viewText(plain), viewText(hinted)
}

func viewText[T int | string](view map[string][]T) string {
	for _, list := range view {
		slices.Sort(list)
	}
	return jsonText(view)
}
