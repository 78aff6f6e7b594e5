// Writes the golden objects of endpointd-wire with upstream's own code, and checks ours with it.
// See README.md.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

var scheme = runtime.NewScheme()
var envelope = protobuf.NewSerializer(scheme, scheme)

func main() {
	directory := flag.String("dir", "..", "where the golden objects are")
	check := flag.Bool("check", false, "read what endpointd-wire wrote instead of writing")
	flag.Parse()
	must(corev1.AddToScheme(scheme))
	must(discoveryv1.AddToScheme(scheme))
	if *check {
		checkOurs(*directory)
		return
	}
	for name, object := range objects() {
		write(*directory, name+".pb", encode(object))
		write(*directory, name+".json", indent(object))
	}
	pb, lines := watchStream()
	write(*directory, "watch.pb", pb)
	write(*directory, "watch.jsonl", lines)
}

// Every object we wrote must be, to upstream, the object it wrote itself.
func checkOurs(directory string) {
	for _, name := range []string{"endpoints", "endpointslice"} {
		want := objects()[name]
		want.(metav1.Object).SetManagedFields(nil)
		got := decode(read(directory, "ours", name+".pb"))
		if !equality.Semantic.DeepEqual(want, got) {
			fail("%s differs:\nwant %s\ngot  %s", name, indent(want), indent(got))
		}
		fmt.Println("ok", name)
	}
	options := decode(read(directory, "ours", "deleteoptions.pb")).(*metav1.DeleteOptions)
	uid, version := options.Preconditions.UID, options.Preconditions.ResourceVersion
	if *uid != "9d3c1d3e-57b8-4a59-9a43-9e55a2f6e7f1" || *version != "4711" {
		fail("deleteoptions differ: %s", indent(options))
	}
	fmt.Println("ok deleteoptions")
}

func watchStream() (pb, lines []byte) {
	var stream, text bytes.Buffer
	frames := protobuf.LengthDelimitedFramer.NewFrameWriter(&stream)
	for _, event := range watchEvents() {
		framed := metav1.WatchEvent{Type: event.name, Object: runtime.RawExtension{Raw: encode(event.object)}}
		message, err := framed.Marshal()
		must(err)
		_, err = frames.Write(message)
		must(err)
		line, err := json.Marshal(map[string]any{"type": event.name, "object": event.object})
		must(err)
		text.Write(append(line, '\n'))
	}
	return stream.Bytes(), text.Bytes()
}

func encode(object runtime.Object) []byte {
	var buffer bytes.Buffer
	must(envelope.Encode(object, &buffer))
	return buffer.Bytes()
}

func decode(body []byte) runtime.Object {
	object, _, err := envelope.Decode(body, nil, nil)
	must(err)
	return object
}

func indent(object any) []byte {
	text, err := json.MarshalIndent(object, "", "  ")
	must(err)
	return append(text, '\n')
}

func write(directory, name string, content []byte) {
	must(os.WriteFile(filepath.Join(directory, name), content, 0o644))
}

func read(path ...string) []byte {
	content, err := os.ReadFile(filepath.Join(path...))
	must(err)
	return content
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "error: "+format+"\n", args...)
	os.Exit(1)
}
