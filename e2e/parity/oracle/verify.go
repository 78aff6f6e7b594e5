package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// vector is the half of a recorded vector that is not a case: the answer.
type vector struct {
	Expect *Expect `json:"expect"`
	Then   *struct {
		Expect *Expect `json:"expect"`
	} `json:"then"`
}

// verify asks every vector of the files again and reports those answered
// differently from what was recorded.
func verify(files []string, runs int, report io.Writer) (passed, failed int, err error) {
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			return passed, failed, err
		}
		err = eachLine(in, func(line []byte) error {
			id, wrong := verifyVector(line, runs)
			if len(wrong) == 0 {
				passed++
				return nil
			}
			failed++
			_, err := fmt.Fprintf(report, "%s: %s\n", id, strings.Join(wrong, "; "))
			return err
		})
		in.Close()
		if err != nil {
			return passed, failed, err
		}
	}
	_, err = fmt.Fprintf(report, "%d passed, %d failed\n", passed, failed)
	return passed, failed, err
}

// verifyVector names the parts of a vector that came out differently.
func verifyVector(line []byte, runs int) (id string, wrong []string) {
	c, err := readCase(line)
	if err != nil {
		return c.ID, []string{err.Error()}
	}
	var recorded vector
	if err := json.Unmarshal(line, &recorded); err != nil {
		return c.ID, []string{err.Error()}
	}
	if recorded.Expect == nil || (recorded.Then == nil) != (c.Then == nil) {
		return c.ID, []string{"the vector has no answer to compare with"}
	}
	c.Runs = runs
	given, err := askAsReader(c)
	if err != nil {
		return c.ID, []string{err.Error()}
	}
	wrong = differences(recorded.Expect, given.Expect, runs)
	if recorded.Then != nil {
		for _, part := range differences(recorded.Then.Expect, given.Then.Expect, runs) {
			wrong = append(wrong, "then."+part)
		}
	}
	if len(wrong) == 0 && !sameVersions(c, recorded.Expect) {
		wrong = append(wrong, "versions")
	}
	return c.ID, wrong
}

// askAsReader gives the answer as a reader of the output would see it.
func askAsReader(c *Case) (answer vector, err error) {
	again := *c // A run may do what it likes with its world.
	again.World = c.World.copied()
	if c.Then != nil {
		again.Then = &Then{c.Then.World.copied()}
	}
	line := ask(&again)
	if line.Fault != "" {
		return answer, errors.New(line.Fault)
	}
	return answer, json.Unmarshal(compact(line), &answer)
}

// Endpoints come out of a map, and an update that only moves them is a change
// that counts: whether versions agree is left to chance. Often enough for that.
const versionTriesMax = 100

// sameVersions compares names, versions and generations too, which are the
// stand-in API server's own doing. With more than one write they depend on
// upstream's order, and tell nothing.
func sameVersions(c *Case, recorded *Expect) bool {
	if recorded.Nondeterministic || len(recorded.Writes) > 1 {
		return true
	}
	c.Runs = 1
	for range versionTriesMax {
		given, err := askAsReader(c)
		if err == nil &&
			canonicalWrites(recorded.Writes, versions) == canonicalWrites(given.Expect.Writes, versions) &&
			canonicalEnd(recorded.End, versions) == canonicalEnd(given.Expect.End, versions) {
			return true
		}
	}
	return false
}

func differences(recorded, given *Expect, runs int) (parts []string) {
	differ := func(name, a, b string) {
		if a != b {
			parts = append(parts, name)
		}
	}
	if recorded.Nondeterministic {
		was, is := summaries(recorded), summaries(given)
		for _, name := range recorded.Stable {
			differ(name, was[name], is[name])
		}
	} else {
		differ("writes", canonicalWrites(recorded.Writes, content), canonicalWrites(given.Writes, content))
		differ("events", canonicalNotices(recorded.Events), canonicalNotices(given.Events))
		differ("errors", canonicalErrors(recorded.Errors), canonicalErrors(given.Errors))
		differ("end", canonicalEnd(recorded.End, content), canonicalEnd(given.End, content))
	}
	// The recorded vectors have no second sync in a `then`.
	hasSecondSync := recorded.SecondSyncWrites != nil
	if hasSecondSync && !recorded.SecondSyncVaries {
		differ("staleSync", staleResult(recorded), staleResult(given))
		was, is := secondParts(recorded), secondParts(given)
		for i, name := range []string{"secondSyncWrites", "secondSyncEvents", "secondSyncError"} {
			differ(name, was[i], is[i])
		}
	}
	if runs > 1 {
		differ("nondeterministic", fmt.Sprint(recorded.Nondeterministic), fmt.Sprint(given.Nondeterministic))
		differ("stable", fmt.Sprint(recorded.Stable), fmt.Sprint(given.Stable))
	}
	if runs > 1 && hasSecondSync {
		differ("secondSyncVaries", fmt.Sprint(recorded.SecondSyncVaries), fmt.Sprint(given.SecondSyncVaries))
	}
	return parts
}
