package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAnswersComeInOrderAndAtOnce(t *testing.T) {
	worldsIn, worldsOut := io.Pipe()
	answersIn, answersOut := io.Pipe()
	go func() {
		answersOut.CloseWithError(stream(worldsIn, answersOut))
	}()
	defer time.AfterFunc(20*time.Second, func() {
		answersIn.CloseWithError(errors.New("no answer came"))
	}).Stop()
	answers := bufio.NewReader(answersIn)
	for _, id := range []string{"mirror-000010", "slice-000000", "endpoints-000040"} {
		if _, err := worldsOut.Write(vectorLine(t, id)); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadBytes('\n')
		if err != nil || !bytes.HasPrefix(line, []byte(`{"id":"`+id+`","expect":{"writes":[`)) {
			t.Fatalf("%s: %v %.100s", id, err, line)
		}
	}
	worldsOut.Close()
	if _, err := answers.ReadByte(); err != io.EOF {
		t.Fatalf("after the last answer: %v", err)
	}
}

func TestWhatCannotBeReadIsAFault(t *testing.T) {
	for line, fault := range map[string]string{
		`nonsense`: "not a world",
		`{"id":"a","controller":"gc","key":"n/a"}`:                                                                                   `controller "gc"`,
		`{"id":"a","controller":"endpoints","key":"n/a/b"}`:                                                                          "key",
		`{"id":"a","controller":"endpoints","key":"n/a","runs":-1}`:                                                                  "runs",
		`{"id":"a","controller":"endpoints","key":"n/a","world":{"pods":[{"spek":{}}]}}`:                                             "spek",
		`{"id":"a","controller":"endpoints","key":"n/a","world":{"pods":[null]}}`:                                                    "pods[0] is null",
		`{"id":"a","controller":"endpoints","key":"n/a","world":{"pods":[{}]}}`:                                                      "no name",
		`{"id":"a","controller":"endpoints","key":"n/a","world":{"nodes":[{"metadata":{"name":"x"}},{"metadata":{"name":"x"}}]}}`:    "two nodes",
		`{"id":"a","controller":"endpointslice","key":"n/a","settings":{"maxEndpointsPerSlice":-1}}`:                                 "limit",
		`{"id":"a","controller":"endpoints","key":"n/a","settings":{"inject":{"verb":"get"}}}`:                                       "inject.verb",
		`{"id":"a","controller":"endpoints","key":"n/a","settings":{"inject":{"verb":"create","resource":"x"}}}`:                     "inject.resource",
		`{"id":"a","controller":"endpoints","key":"n/a","settings":{"inject":{"verb":"create","resource":"endpoints","error":"x"}}}`: "inject.error",
		`{"id":"a","controller":"endpoints","key":"n/a","then":{"world":{"endpoints":[{"metadata":{"name":"x"}}]}}}`:                 "carried over",
	} {
		answer := answerLine([]byte(line))
		if !strings.Contains(answer.Fault, fault) || answer.Expect != nil {
			t.Errorf("%s: fault %q", line, answer.Fault)
		}
		if strings.HasPrefix(line, `{"id":"a"`) && answer.ID != "a" {
			t.Errorf("%s: id %q", line, answer.ID)
		}
	}
}

func TestAPanicIsAFault(t *testing.T) {
	answer := ask(&Case{
		ID: "a", Controller: "endpoints", Key: "n/a", Runs: 1,
		World: World{Services: []*corev1.Service{nil}}, // What readCase lets nobody send.
	})
	if !strings.HasPrefix(answer.Fault, "panic: ") || answer.ID != "a" {
		t.Errorf("answered %+v", answer)
	}
}

// With no node ever seen the topology cache is as it was constructed, which
// upstream explains in other words than nodes it cannot use.
func TestNodesAreShownOnceThereWasOne(t *testing.T) {
	const one, insufficient = "Nodes only ready in one zone", "Insufficient Node information"
	const usable = "Insufficient number of endpoints (0 endpoints, 2 zones)"
	service := `{"services":[{"metadata":{"name":"a","namespace":"n","annotations":
		{"service.kubernetes.io/topology-mode":"Auto"}},"spec":{"ipFamilies":["IPv4"],"selector":{"a":"b"}}}]`
	unready := `,"nodes":[{"metadata":{"name":"x"}}]}`
	ready := func(zone string) string {
		return `{"metadata":{"name":"` + zone + `","labels":{"topology.kubernetes.io/zone":"` + zone + `"}},
			"status":{"allocatable":{"cpu":"1"},"conditions":[{"type":"Ready","status":"True"}]}}`
	}
	two := `,"nodes":[` + ready("za") + `,` + ready("zb") + `]}`
	for _, c := range []struct{ world, then, first, last string }{
		{service + `}`, service + `}`, one, one},
		{service + `}`, service + unready, one, insufficient},
		{service + two, service + `}`, usable, insufficient},
	} {
		line := `{"id":"a","controller":"endpointslice","key":"n/a","world":` + c.world + `,"then":{"world":` + c.then + `}}`
		answer := answerLine([]byte(line))
		if answer.Fault != "" || len(answer.Expect.Events) != 1 || len(answer.Then.Expect.Events) != 1 {
			t.Fatalf("%+v", answer)
		}
		first, last := answer.Expect.Events[0].Message, answer.Then.Expect.Events[0].Message
		if !strings.HasPrefix(first, c.first) || !strings.HasPrefix(last, c.last) {
			t.Errorf("%q, then %q", first, last)
		}
	}
}

func TestNullsAreLeftOutAndPointersToNothingKept(t *testing.T) {
	world := `{"id":"a","controller":"mirroring","key":"n/a","world":{"endpointslices":[{"metadata":{"name":"s",
		"namespace":"n","labels":{"kubernetes.io/service-name":"a"}},"addressType":"IPv4","endpoints":[
		{"addresses":["10.0.0.1"],"hints":{},"nodeName":"","conditions":{}}]}]}}`
	var answer Answer
	if err := json.Unmarshal(compact(answerLine([]byte(world))), &answer); err != nil {
		t.Fatal(err)
	}
	got := string(answer.Expect.End.EndpointSlices[0])
	if !strings.Contains(got, `"endpoints":[{"addresses":["10.0.0.1"],"hints":{},"nodeName":""}]`) ||
		strings.Contains(got, "null") {
		t.Error(got)
	}
}

func TestControllersLeaveNoGoroutinesBehind(t *testing.T) {
	lines := [][]byte{vectorLine(t, "slice-000010"), vectorLine(t, "endpoints-000040"), vectorLine(t, "mirror-000010")}
	before := runtime.NumGoroutine()
	for range 50 {
		for _, line := range lines {
			if answer := answerLine(line); answer.Fault != "" {
				t.Fatal(answer.Fault)
			}
		}
	}
	// Those that were told to stop need a moment to do it.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
