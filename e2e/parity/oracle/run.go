package main

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// run is one pass over a case with a fresh controller: the first sync, one on
// stale stores if the case asks for it, a second sync, and two syncs after the
// change that `then` describes.
type run struct {
	of         *Case
	controller *controller
	server     *server
	stores     stores
	notices    notices
	seenNodes  bool
}

// ask answers a case. A panic, most likely upstream's, becomes a fault.
func ask(c *Case) (answer Answer) {
	answer.ID = c.ID
	defer func() {
		if panicked := recover(); panicked != nil {
			answer = Answer{ID: c.ID, Fault: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	expect, then, err := passes(c)
	if err != nil {
		return Answer{ID: c.ID, Fault: err.Error()}
	}
	answer.Expect = expect
	if then != nil {
		answer.Then = &ThenAnswer{*then}
	}
	return answer
}

// passes runs a case as often as it asks. The first run is the sample given;
// the others only tell what varies.
func passes(c *Case) (*Expect, *Expect, error) {
	if c.Runs == 1 {
		return pass(c, c.World, thenWorld(c))
	}
	var firsts, thens []*Expect
	for range c.Runs {
		var after *World
		if c.Then != nil {
			after = new(c.Then.World.copied())
		}
		first, then, err := pass(c, c.World.copied(), after)
		if err != nil {
			return nil, nil, err
		}
		firsts = append(firsts, first)
		thens = append(thens, then)
	}
	markVariation(firsts)
	if c.Then != nil {
		markVariation(thens)
	}
	return firsts[0], thens[0], nil
}

func thenWorld(c *Case) *World {
	if c.Then == nil {
		return nil
	}
	return &c.Then.World
}

func pass(c *Case, world World, after *World) (*Expect, *Expect, error) {
	r := &run{of: c, server: newServer(world), stores: newStores()}
	upstream, err := newController(c, r.stores, r.server, &r.notices)
	if err != nil {
		return nil, nil, err
	}
	defer upstream.stop()
	r.controller = upstream
	world.EndpointSlices = copies(world.EndpointSlices) // The server keeps its own.
	world.Endpoints = copies(world.Endpoints)
	r.stores.fillWith(world)

	first := r.firstAndSecond()
	if after == nil {
		return first, nil, nil
	}
	return first, r.then(*after), nil
}

func (r *run) firstAndSecond() *Expect {
	r.server.inject = r.of.Settings.Inject
	expect := &Expect{Sync: r.sync()}
	r.server.inject = nil
	expect.End = r.end()
	if r.of.Settings.StaleSync {
		expect.StaleSync = new(r.sync())
	}
	r.second(expect)
	return expect
}

// second syncs once more, without any change. Upstream's writes in it show
// that its first sync did not converge.
func (r *run) second(expect *Expect) {
	r.stores.catchUp(r.server)
	second := r.sync()
	expect.SecondSyncWrites = &second.Writes
	expect.SecondSyncEvents = second.Events
	expect.SecondSyncError = second.Error
}

// then replaces what the controller only reads; what the API server holds is
// carried over. Mirroring reads Endpoints, so there they are replaced as well.
func (r *run) then(after World) *Expect {
	if r.of.Controller == "mirroring" {
		r.server.endpoints.storedBy = byKey(after.Endpoints)
	}
	fill(r.stores.services, after.Services)
	fill(r.stores.pods, after.Pods)
	fill(r.stores.nodes, after.Nodes)
	r.stores.catchUp(r.server)
	expect := &Expect{Sync: r.sync(), End: r.end()}
	r.second(expect)
	return expect
}

// sync calls upstream once, after the node handlers. They are called only once
// there has been a node, because no node event exists before.
func (r *run) sync() Sync {
	r.seenNodes = r.seenNodes || len(r.stores.nodes.objects.ListKeys()) > 0
	if r.controller.seeNodes != nil && r.seenNodes {
		r.controller.seeNodes()
	}
	r.server.writes = []Write{}
	r.notices.seen = []Notice{}
	err := r.controller.sync(r.of.Key)
	done := Sync{Writes: r.server.writes, Events: r.notices.seen}
	if err != nil {
		done.Error = new(err.Error())
		done.Errors = leaves(err)
	}
	return done
}

func (r *run) end() End {
	namespace, name, err := cache.SplitMetaNamespaceKey(r.of.Key)
	if err != nil {
		panic(err) // Checked when the case was read.
	}
	return r.server.end(namespace, name)
}
