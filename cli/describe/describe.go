// Package describe implements `oc describe` for OpenShift's kinds, with the fields and headings of
// OpenShift 3.11. kubectl describes Kubernetes' kinds. For nodes, this package adds the fields that
// OpenShift 3.11 printed.
//
// Sources: OpenShift Container Platform 3.9 Architecture, 3.5.2.7.1 (image streams and tags); 3.11
// Cluster Administration, 3.4 (deployment configurations), 15.3 (security context constraints) and
// 18.3 (quotas). The fields of the other kinds match 3.11's client.
package describe

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	kubectldescribe "k8s.io/kubectl/pkg/describe"

	"github.com/slipway-platform/slipway/cli/objects"
)

// none is the text for an unset value.
const none = "<none>"

// For returns the describer for a resource. For OpenShift's kinds, it is a describer of this
// package, and for all other kinds, it is kubectl's describer, with additional fields for nodes.
// For is a kubectl DescriberFunc.
func For(getter genericclioptions.RESTClientGetter, mapping *meta.RESTMapping) (kubectldescribe.ResourceDescriber, error) {
	kind := mapping.GroupVersionKind.GroupKind()
	write, ok := kinds()[kind]
	isNode := kind == schema.GroupKind{Kind: "Node"}
	if !ok && !isNode {
		return kubectldescribe.Describer(getter, mapping)
	}
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if isNode {
		inner, err := kubectldescribe.Describer(getter, mapping)
		return node{inner, client.Resource(mapping.Resource)}, err
	}
	return describer{client: client, server: config.Host, resource: mapping.Resource, write: write, now: time.Now}, nil
}

// writer writes the description of an object of one kind.
type writer func(p *page, content map[string]any) error

// of returns a writer that converts the object to the Go type T and calls write.
func of[T any](write func(p *page, object *T) error) writer {
	return func(p *page, content map[string]any) error {
		object := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
			return fmt.Errorf("read object: %w", err)
		}
		return write(p, object)
	}
}

// describer describes a resource's objects.
type describer struct {
	client   dynamic.Interface
	server   string
	resource schema.GroupVersionResource
	write    writer
	now      func() time.Time
}

// Describe reads an object from the API server and returns its description.
func (d describer) Describe(namespace, name string, settings kubectldescribe.DescriberSettings) (string, error) {
	ctx := context.Background() // kubectl does not pass a context
	object, err := d.client.Resource(d.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	p := &page{ctx: ctx, client: d.client, server: d.server, now: d.now()}
	if err := d.write(p, object.Object); err != nil {
		return "", err
	}
	if settings.ShowEvents {
		p.events(object.GetNamespace(), object.GetUID())
	}
	return p.align()
}

// Object describes an object of an OpenShift kind, which does not have to exist in the cluster.
// client is used to read related objects. It can be nil if object is a template.
func Object(ctx context.Context, client dynamic.Interface, server string, object runtime.Object) (string, error) {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	write, ok := kinds()[kind]
	if !ok {
		return "", fmt.Errorf("describe %s: this kind is not part of OpenShift", kind)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", fmt.Errorf("describe %s: %w", kind, err)
	}
	p := &page{ctx: ctx, client: client, server: server, now: time.Now()}
	if err := write(p, content); err != nil {
		return "", err
	}
	return p.align()
}

// page contains the text of a description. Tabs separate the columns until the text is complete.
// align then replaces them with spaces.
type page struct {
	ctx    context.Context
	client dynamic.Interface
	server string
	now    time.Time
	text   bytes.Buffer
}

func (p *page) align() (string, error) {
	var out bytes.Buffer
	table := printers.GetNewTabWriter(&out)
	if _, err := table.Write(p.text.Bytes()); err != nil {
		return "", err
	}
	err := table.Flush()
	return out.String(), err
}

// line writes a line. It escapes control characters, such as terminal escape sequences.
func (p *page) line(format string, args ...any) {
	printers.WriteEscaped(&p.text, fmt.Sprintf(format, args...)+"\n")
}

// field writes a name and a value. An empty value is written as <none>.
func (p *page) field(name string, value any) {
	text := fmt.Sprint(value)
	p.line("%s:\t%s", name, cmp.Or(text, none))
}

// list writes a name and its values on one line, separated by commas.
func (p *page) list(name string, values []string) { p.field(name, strings.Join(values, ",")) }

// lines writes a name and its values, each value on its own line.
func (p *page) lines(name string, values []string) {
	if len(values) == 0 {
		values = []string{none}
	}
	p.field(name, values[0])
	for _, value := range values[1:] {
		p.line("%s\t%s", strings.Repeat(" ", len(name)-len(strings.TrimLeft(name, " "))), value)
	}
}

// metadata writes the fields at the beginning of every description.
func (p *page) metadata(m metav1.ObjectMeta) {
	p.field("Name", m.Name)
	if m.Namespace != "" {
		p.field("Namespace", m.Namespace)
	}
	p.field("Created", p.ago(m.CreationTimestamp))
	p.lines("Labels", pairs(m.Labels))
	annotations := maps.Clone(m.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	p.lines("Annotations", pairs(annotations))
}

// ago returns the time elapsed since t, such as "5 minutes ago", or <none> if t is unset.
func (p *page) ago(t metav1.Time) string {
	if t.IsZero() {
		return none
	}
	return units.HumanDuration(p.now.Sub(t.Time)) + " ago"
}

// pairs returns the entries of a map as sorted key=value strings.
func pairs(m map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+"="+m[key])
	}
	return all
}

// texts converts values of a string type to strings.
func texts[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}

// optional returns the value that a pointer points to, or <none> if the pointer is nil.
func optional[T any](value *T) any {
	if value == nil {
		return none
	}
	return *value
}

// events writes an object's events. It writes nothing if they cannot be listed.
func (p *page) events(namespace string, uid types.UID) {
	list, err := objects.List[corev1.Event](p.ctx, p.client, corev1.SchemeGroupVersion.WithResource("events"), cmp.Or(namespace, metav1.NamespaceDefault),
		metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(uid)})
	if err != nil {
		return
	}
	p.line("")
	kubectldescribe.DescribeEvents(&corev1.EventList{Items: list}, kubectldescribe.NewPrefixWriter(&p.text))
}
