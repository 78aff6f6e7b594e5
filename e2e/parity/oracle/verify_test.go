package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

var vectorFiles = map[string]int{ // and how many vectors each must have
	"../vectors/endpointslice.jsonl": 400,
	"../vectors/endpoints.jsonl":     200,
	"../vectors/mirroring.jsonl":     200,
}

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

func TestEveryVectorIsReproduced(t *testing.T) {
	for file, count := range vectorFiles {
		var report strings.Builder
		passed, failed, err := verify([]string{file}, 1, &report)
		if err != nil || failed > 0 || passed != count {
			t.Errorf("%s: %v\n%s", file, err, report.String())
		}
	}
}

// What varies, and what does not, is the same again when a world is run often.
func TestVariationIsSeenAgain(t *testing.T) {
	for id, nondeterministic := range map[string]bool{
		"slice-000800":  true,  // only packing varies
		"slice-000820":  true,  // events vary, too
		"mirror-000430": true,  // nearly everything varies
		"mirror-000720": false, // only what follows the first sync varies
		"slice-000010":  false,
	} {
		line := vectorLine(t, id)
		if _, wrong := verifyVector(line, 96); len(wrong) > 0 {
			t.Errorf("%s: %v", id, wrong)
		}
		answer := answerLine([]byte(strings.Replace(string(line), "{", `{"runs":96,`, 1)))
		e := answer.Expect
		if e.Nondeterministic != nondeterministic || (e.Variants > 1) != nondeterministic {
			t.Errorf("%s: nondeterministic %v, variants %d", id, e.Nondeterministic, e.Variants)
		}
	}
}

// A check that cannot fail checks nothing: every part of a vector that is
// changed must be noticed.
func TestAChangedVectorIsNoticed(t *testing.T) {
	for _, c := range []struct{ id, part, old, new string }{
		{"slice-000000", "writes", `trigger-time":"2026`, `trigger-time":"2027`},
		{"slice-000000", "end", `"generation":3`, `"annotations":{"a":"b"},"generation":3`},
		{"slice-000000", "versions", `"generation":3`, `"generation":4`},
		{"slice-000000", "versions", `"resourceVersion":"900001"`, `"resourceVersion":"900002"`},
		{"slice-000000", "secondSyncWrites", `"secondSyncWrites":[]`, `"secondSyncWrites":[{"verb":"delete"}]`},
		{"slice-000010", "errors", `"errors":["`, `"errors":["x`},
		{"slice-000010", "events", `"reason":"`, `"reason":"x`},
		{"slice-000010", "secondSyncError", `"secondSyncError":"`, `"secondSyncError":"x`},
		{"slice-000330", "secondSyncEvents", `"secondSyncEvents":[`, `"secondSyncEvents":[{"type":"Normal"},`},
		{"slice-000330", "staleSync", `"staleSync":{"writes":[]`, `"staleSync":{"writes":[{"verb":"delete"}]`},
		{"slice-000390", "writeCounts", `"writes":[`, `"writes":[{"verb":"delete"},`},
		{"slice-000390", "endShape", `"end":{"endpointslices":[`, `"end":{"endpointslices":[{},`},
		{"slice-000800", "endUnion", `"nodeName":"`, `"nodeName":"x`},
		{"slice-000820", "endUnionWithHints", `"forZones":[{"name":"`, `"forZones":[{"name":"x`},
	} {
		line := vectorLine(t, c.id)
		at := bytes.Index(line, []byte(`"expect":`))
		answer := bytes.ReplaceAll(line[at:], []byte(c.old), []byte(c.new))
		changed := append(bytes.Clone(line[:at]), answer...)
		if bytes.Equal(line, changed) {
			t.Errorf("%s: nothing to change for %s", c.id, c.part)
		}
		if _, wrong := verifyVector(changed, 1); !strings.Contains(strings.Join(wrong, ";"), c.part) {
			t.Errorf("%s: a change of %s was not noticed, only %q", c.id, c.part, wrong)
		}
	}
}

func vectorLine(t *testing.T, id string) []byte {
	t.Helper()
	for file := range vectorFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var v struct{ ID string }
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			if v.ID == id {
				return line
			}
		}
	}
	t.Fatalf("no vector %s", id)
	return nil
}
