// Writes ../types.json: how Go reads and writes the types of the kinds this server has. Field
// names, which zero values are left out, merge keys, and descriptions, all by reflection on
// upstream's own structs.
package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var roots = []any{
	corev1.Namespace{}, corev1.Node{}, corev1.Pod{}, corev1.Service{}, corev1.Endpoints{},
	corev1.Event{}, corev1.ConfigMap{}, corev1.ServiceAccount{}, corev1.Binding{},
	discoveryv1.EndpointSlice{}, eventsv1.Event{}, coordinationv1.Lease{},
	appsv1.Deployment{}, appsv1.ReplicaSet{}, autoscalingv1.Scale{},
	metav1.DeleteOptions{}, metav1.Status{},
}

// Types whose JSON is not what their fields say.
var leaves = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "string",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "any",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "intorstring",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "any",
}

type field struct {
	Name     string `json:"name"`
	Type     any    `json:"type"`
	GoType   string `json:"go,omitempty"`
	Number   int    `json:"number,omitempty"` // in protobuf
	Within   int    `json:"within,omitempty"` // in protobuf: the embedded message it is in
	Empty    string `json:"empty,omitempty"`  // "omit" leaves zero values out, "keep" writes them
	Pointer  bool   `json:"pointer,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	MergeKey string `json:"mergeKey,omitempty"`
	Doc      string `json:"doc,omitempty"`
}

type object struct {
	Go     string  `json:"go"`
	Doc    string  `json:"doc,omitempty"`
	Fields []field `json:"fields"`
}

var types = map[string]object{}

func name(t reflect.Type) string {
	path := strings.Split(strings.TrimPrefix(t.PkgPath(), "k8s.io/"), "/")
	return "io.k8s." + strings.Join(path, ".") + "." + t.Name()
}

func docs(t reflect.Type) map[string]string {
	if it, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return it.SwaggerDoc()
	}
	return nil
}

func describe(t reflect.Type) any {
	if leaf, ok := leaves[t.PkgPath()+"."+t.Name()]; ok {
		return leaf
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return map[string]any{"array": describe(t.Elem())}
	case reflect.Map:
		return map[string]any{"map": describe(t.Elem())}
	case reflect.Struct:
		add(t)
		return map[string]any{"ref": name(t)}
	default:
		return t.Kind().String()
	}
}

func add(t reflect.Type) {
	if _, known := types[name(t)]; known {
		return
	}
	types[name(t)] = object{}
	own := docs(t)
	types[name(t)] = object{Go: t.Name(), Doc: own[""], Fields: fields(t)}
}

func fields(t reflect.Type) []field {
	own := docs(t)
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Anonymous && (tag[0] == "" || len(tag) > 1 && tag[1] == "inline") {
			for _, one := range fields(f.Type) {
				one.Within = number(f.Tag.Get("protobuf"))
				if one.Within == 0 {
					one.Number = 0 // TypeMeta is not part of the message.
				}
				all = append(all, one)
			}
			continue
		}
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		one := field{
			Name: tag[0], Type: describe(f.Type), Pointer: f.Type.Kind() == reflect.Pointer,
			Strategy: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey"),
			Doc: own[tag[0]], Empty: "keep", Number: number(f.Tag.Get("protobuf")),
		}
		for _, option := range tag[1:] {
			if option == "omitzero" || option == "omitempty" && f.Type.Kind() != reflect.Struct {
				one.Empty = "omit"
			}
		}
		leaf := f.Type
		for leaf.Kind() == reflect.Pointer {
			leaf = leaf.Elem()
		}
		if leaf.PkgPath() != "" && leaf.Kind() != reflect.Struct {
			one.GoType = leaf.String()
		}
		all = append(all, one)
	}
	return all
}

// "bytes,1,opt,name=metadata" is field 1.
func number(tag string) int {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	for _, root := range roots {
		describe(reflect.TypeOf(root))
	}
	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	var out bytes.Buffer
	out.WriteString("{\n")
	for i, name := range names {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(types[name]); err != nil {
			panic(err)
		}
		out.WriteString("\"" + name + "\": " + strings.TrimSpace(text.String()))
		if i+1 < len(names) {
			out.WriteString(",")
		}
		out.WriteString("\n")
	}
	out.WriteString("}\n")
	if err := os.WriteFile("../types.json", out.Bytes(), 0o644); err != nil {
		panic(err)
	}
}
