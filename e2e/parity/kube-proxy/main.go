// Command proxy says which endpoints kube-proxy uses: upstream's own code reads a Service and its slices
// and chooses, for one node. One case per line in, one answer per line out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/kubernetes/pkg/proxy"
)

// A Service with all its slices, as the API server sends them, and a node.
type input struct {
	Service *v1.Service                `json:"service"`
	Slices  []*discovery.EndpointSlice `json:"slices"`
	Node    string                     `json:"node"`
	Zone    string                     `json:"zone"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var in input
		if err := json.Unmarshal(lines.Bytes(), &in); err != nil {
			fmt.Fprintln(os.Stderr, "not a case:", err)
			os.Exit(1)
		}
		if err := out.Encode(reachable(&in)); err != nil {
			os.Exit(1)
		}
	}
}

// The endpoints that clients on the node reach, by the name of the port.
func reachable(in *input) map[string][]string {
	family := v1.IPv4Protocol
	if len(in.Service.Spec.IPFamilies) > 0 {
		family = in.Service.Spec.IPFamilies[0]
	}
	services := proxy.NewServiceChangeTracker(family, nil, nil)
	services.Update(nil, in.Service)
	ports := make(proxy.ServicePortMap)
	ports.Update(services)
	tracker := proxy.NewEndpointsChangeTracker(family, in.Node, nil, nil)
	for _, slice := range in.Slices {
		tracker.EndpointSliceUpdate(slice, false)
	}
	endpoints := make(proxy.EndpointsMap)
	endpoints.Update(tracker)
	labels := map[string]string{v1.LabelTopologyZone: in.Zone}
	answer := make(map[string][]string)
	for name, port := range ports {
		_, _, all, _ := proxy.CategorizeEndpoints(endpoints[name], port, in.Node, labels)
		addresses := []string{}
		for _, endpoint := range all {
			addresses = append(addresses, endpoint.String())
		}
		sort.Strings(addresses)
		answer[name.Port] = addresses
	}
	return answer
}
