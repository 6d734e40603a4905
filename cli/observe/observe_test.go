package observe

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

// listener is a writer. actions maps texts to functions. listener calls a function when the output
// contains its text for the first time.
type listener struct {
	mutex   sync.Mutex
	text    strings.Builder
	actions map[string]func()
}

func (l *listener) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text.Write(text)
	for desired, call := range l.actions {
		if strings.Contains(l.text.String(), desired) {
			delete(l.actions, desired)
			call()
		}
	}
	return len(text), nil
}

func (l *listener) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

func configMap(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value of " + name}}}
	object.SetNamespace("shop")
	object.SetName(name)
	return object
}

// observing returns an observation of the ConfigMaps a and b that writes to out, and a client for
// these ConfigMaps.
func observing(t *testing.T, out io.Writer) (*observation, dynamic.ResourceInterface) {
	t.Helper()
	client := fake.NewSimpleDynamicClient(scheme.Scheme, configMap("a"), configMap("b"))
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	o := &observation{
		IOStreams: genericiooptions.IOStreams{Out: out, ErrOut: out}, metrics: newMetrics(), namespaced: true, quiet: true, maximumErrors: 3, output: "jsonpath",
		informer: dynamicinformer.NewFilteredDynamicInformer(client, resource, "shop", 0, cache.Indexers{}, nil).Informer(),
	}
	return o, client.Resource(resource).Namespace("shop")
}

func TestObserveRunsCommandOncePerObject(t *testing.T) {
	var out listener
	o, _ := observing(t, &out)
	o.once, o.typeVariable, o.objectVariable, o.arguments = true, "KIND", "OBJECT", []string{"{.data.key}", "{.missing}"}
	o.names, o.remove = []string{"printf", `shop/b\nshop/gone\n`}, []string{"sh", "-c", `echo "$KIND $*" is gone`, "sh"}
	o.each = []string{"sh", "-c", `echo "$KIND $1 $2 [$3] [$4]"; case $OBJECT in *'"name":"'$2'"'*) echo has it;; esac`, "sh"}
	if err := o.validate([]string{"configmaps"}); err != nil {
		t.Fatal(err)
	}
	if err := o.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "Sync shop a [value of a] []\nhas it\nSync shop b [value of b] []\nhas it\nDeleted shop gone is gone\n"
	if out.String() != want {
		t.Errorf("prints %q, want %q", out.String(), want)
	}
}

func TestChangesAreObservedAndCounted(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out listener
	o, objects := observing(t, &out)
	var problem error
	metrics := ""
	out.actions = map[string]func(){
		"Sync shop b":    func() { _, problem = objects.Create(ctx, configMap("c"), metav1.CreateOptions{}) },
		"Added shop c":   func() { _, problem = objects.Update(ctx, configMap("a"), metav1.UpdateOptions{}) },
		"Updated shop a": func() { problem = objects.Delete(ctx, "b", metav1.DeleteOptions{}) },
		"Deleted shop b": func() {
			for _, path := range []string{"/metrics", "/healthz"} {
				response, err := http.Get("http://" + address + path)
				if err != nil {
					problem = err
					break
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				metrics, problem = metrics+string(text), err
			}
			cancel()
		},
	}
	o.listenAddress, o.typeVariable = address, "KIND"
	o.printMetrics = true
	o.each, o.remove = []string{"sh", "-c", `echo "$KIND $*"`, "sh"}, []string{"sh", "-c", `echo "$KIND $*"`, "sh"}
	if err := o.run(ctx); ctx.Err() == nil || problem != nil {
		t.Fatalf("%v, %v; prints %s", err, problem, out.String())
	}
	for _, want := range []string{`observe_counts{type="Deleted"} 1`, `observe_exec_durations_milliseconds_count{exit_code="0",type="Sync"} 2`, "ok\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not in %s", want, metrics)
		}
		if want != "ok\n" && !strings.Contains(out.String(), want) {
			t.Errorf("%q was not printed at the end: %s", want, out.String())
		}
	}
}

func TestObserveEndsAfterTooManyErrors(t *testing.T) {
	var out listener
	o, _ := observing(t, &out)
	o.maximumErrors, o.retryCode, o.retryCount = 2, 7, 1
	o.each = []string{"sh", "-c", "echo once; exit 7"}
	err := o.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "error limit of 2") || strings.Count(out.String(), "once\n") != 4 {
		t.Errorf("%v, prints %s", err, out.String())
	}
}

func TestMissingFieldIsEmptyOrEndsStrictObservation(t *testing.T) {
	for _, tt := range []struct {
		output, argument string
		strict           bool
		want, fails      string
	}{
		{output: "jsonpath", argument: "{.missing}", want: "[]\n[]\n"},
		{output: "go-template", argument: "{{.missing}}", want: "[]\n[]\n"},
		{output: "jsonpath", argument: "{.missing}", strict: true, fails: "missing is not found"},
		{output: "go-template", argument: "{{.missing}}", strict: true, fails: `no entry for key "missing"`},
	} {
		t.Run(fmt.Sprintf("%s, strict %t", tt.output, tt.strict), func(t *testing.T) {
			var out listener
			o, _ := observing(t, &out)
			o.once, o.strict, o.output, o.arguments = true, tt.strict, tt.output, []string{tt.argument}
			o.each = []string{"sh", "-c", `echo "[$3]"`, "sh"}
			if err := o.validate([]string{"configmaps"}); err != nil {
				t.Fatal(err)
			}
			err := o.run(t.Context())
			if tt.fails == "" && err != nil || tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
				t.Errorf("got error %v, want %q", err, tt.fails)
			}
			if out.String() != tt.want {
				t.Errorf("prints %q, want %q", out.String(), tt.want)
			}
		})
	}
}

func TestObserveReportsInvalidArguments(t *testing.T) {
	for want, o := range map[string]*observation{
		"--delete and --names must both be specified": {names: []string{"a"}}, "--selector": {selector: "a in"}, "must be jsonpath": {output: "xml", arguments: []string{"a"}}, `--argument "{"`: {output: "jsonpath", arguments: []string{"{"}},
	} {
		if err := o.validate([]string{"pods"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if text := line([]string{"a", "", "b c", "\x1b[2J"}); text != `a "" "b c" "\x1b[2J"` {
		t.Error(fmt.Sprint("a line is ", text))
	}
}
