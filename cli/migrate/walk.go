package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd/util"
)

// migration is a change of objects.
type migration struct {
	// change changes an object and reports whether it differs.
	change func(*unstructured.Unstructured) (bool, error)
	// save stores an object and returns the result. The default is an update.
	save func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// walk visits objects of a server and migrates them. Its fields are flags.
type walk struct {
	include       []string // kinds
	files         resource.FilenameOptions
	allNamespaces bool
	confirm       bool
	fromKey       string // NAMESPACE/NAME, or NAME of a cluster-scoped object; the first key
	toKey         string // the first key that is excluded
	print         *genericclioptions.PrintFlags

	workers  int  // number of objects that are migrated concurrently
	quiet    bool // print only objects with problems
	chunks   int64
	progress progress
}

func newWalk(include ...string) *walk {
	const chunk = 500
	return &walk{include: include, print: genericclioptions.NewPrintFlags("migrated"), workers: 1, chunks: chunk}
}

func (w *walk) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&w.include, "include", w.include, "Kinds to migrate.")
	flags.BoolVar(&w.allNamespaces, "all-namespaces", true, "Migrate objects of all namespaces, unless --namespace is set.")
	flags.BoolVar(&w.confirm, "confirm", false, "Change the objects. Without it, only list the changes.")
	flags.StringVar(&w.fromKey, "from-key", "", "First key to migrate: NAMESPACE/NAME, or NAME of cluster-scoped objects.")
	flags.StringVar(&w.toKey, "to-key", "", "Migrate objects before this key.")
	flags.StringVarP(w.print.OutputFormat, "output", "o", "", "Print the changed objects without storing them: yaml, json or name.")
	util.AddJsonFilenameFlag(flags, &w.files.Filenames, "Files with the objects to migrate, instead of --include.")
}

// tally counts results.
type tally struct {
	sync.Mutex
	out                                         io.Writer
	total, failed, ignored, unchanged, migrated int
	failing                                     sets.Set[string] // kinds
	verb                                        string
	quiet                                       bool
}

// run migrates the selected objects. It tries all objects. If some fail, it returns an error at the
// end.
func (w *walk) run(ctx context.Context, factory util.Factory, out io.Writer, m migration) error {
	printer, err := w.printer()
	if err != nil {
		return err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(unlimited(config))
	if err != nil {
		return err
	}
	visitor, namespaced, err := w.find(factory)
	if err != nil {
		return err
	}
	trial := printer != nil || !w.confirm
	t := &tally{out: out, failing: sets.New[string](), quiet: w.quiet || printer != nil, verb: map[bool]string{true: "migrated (dry run)", false: "migrated"}[trial]}
	if m.save == nil {
		m.save = func(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return objects.Update(ctx, object, metav1.UpdateOptions{})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.workers)
	err = visitor.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			t.count(info, false, err)
			return nil
		}
		if !w.within(info, namespaced) {
			return nil
		}
		w.progress.visit(info)
		group.Go(func() error {
			changed, err := w.migrate(ctx, client, info, m, trial)
			t.count(info, changed, err)
			if err == nil && changed && printer != nil {
				t.Lock()
				defer t.Unlock()
				return printer.PrintObj(info.Object, out)
			}
			return nil
		})
		return ctx.Err()
	})
	if problem := group.Wait(); problem != nil {
		return problem
	}
	return t.end(err, trial, printer != nil)
}

// unlimited returns a configuration without client-go's limit of five requests per second. The
// priorities of the server, --bandwidth and the workers limit the requests.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	return config
}

// progress reports the kinds that are visited, one after the other. The zero value reports nothing.
type progress struct {
	out     io.Writer
	kind    string
	visited int
}

// visit reports the start of a kind.
func (p *progress) visit(info *resource.Info) {
	if p.out == nil {
		return
	}
	if kind := info.Mapping.Resource.GroupResource().String(); kind != p.kind {
		p.kind = kind
		fmt.Fprintf(p.out, "%d objects visited, next: %s\n", p.visited, kind)
	}
	p.visited++
}

// printer returns the printer of objects, or nil if objects are changed.
func (w *walk) printer() (printers.ResourcePrinter, error) {
	if *w.print.OutputFormat == "" {
		return nil, nil
	}
	return w.print.ToPrinter()
}

// find selects objects, and reports whether they are those of a single namespace.
func (w *walk) find(factory util.Factory) (visitor resource.Visitor, namespaced bool, err error) {
	namespace, ok, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, false, err
	}
	namespaced = ok || !w.allNamespaces
	builder := factory.NewBuilder().Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().AllNamespaces(!namespaced).
		FilenameParam(false, &w.files).RequestChunksOf(w.chunks).Flatten()
	if len(w.files.Filenames) > 0 {
		builder = builder.Latest()
	} else {
		builder = builder.ResourceTypes(w.include...).SelectAllParam(true)
	}
	result := builder.Do().IgnoreErrors(apierrors.IsMethodNotSupported, apierrors.IsNotFound)
	return result, namespaced, result.Err()
}

// within reports whether an object's key is in the requested range.
func (w *walk) within(info *resource.Info, namespaced bool) bool {
	key := info.Name
	if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key = info.Namespace + "/" + info.Name
	} else if namespaced {
		return false
	}
	return (w.fromKey == "" || key >= w.fromKey) && (w.toKey == "" || key < w.toKey)
}

// errIgnored reports that an object is skipped: it was deleted, cannot be changed, or its kind is
// not supported.
var errIgnored = errors.New("object is skipped")

// migrate changes one object. It retries after a conflict and if the server is busy.
func (w *walk) migrate(ctx context.Context, client dynamic.Interface, info *resource.Info, m migration, trial bool) (changed bool, err error) {
	var objects dynamic.ResourceInterface = client.Resource(info.Mapping.Resource)
	if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		objects = client.Resource(info.Mapping.Resource).Namespace(info.Namespace)
	}
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return false, fmt.Errorf("read object: it is a %T", info.Object)
	}
	backoff := wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1, Cap: time.Second}
	err = retry.OnError(backoff, passing, func() error {
		if object == nil {
			if object, err = objects.Get(ctx, info.Name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		before := object.GetResourceVersion()
		if changed, err = m.change(object); err != nil || !changed || trial {
			return err
		}
		result, err := m.save(ctx, objects, object)
		if err != nil {
			object = nil
			return err
		}
		changed = result.GetResourceVersion() != before
		return nil
	})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return false, errIgnored
	}
	return changed, err
}

// passing reports whether an error is temporary.
func passing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}

// count records and prints the result for an object.
func (t *tally) count(info *resource.Info, changed bool, err error) {
	t.Lock()
	defer t.Unlock()
	t.total++
	verbose := bool(klog.V(2).Enabled())
	name := "unknown"
	if info != nil && info.Mapping != nil {
		name = info.Mapping.Resource.Resource + "/" + info.Name
		if info.Namespace != "" {
			name = "-n " + info.Namespace + " " + name
		}
	}
	switch {
	case errors.Is(err, errIgnored):
		t.ignored++
	case err != nil:
		t.failed++
		if info != nil && info.Mapping != nil {
			t.failing.Insert(info.Mapping.Resource.GroupResource().String())
		}
		fmt.Fprintf(t.out, "error: %s: %v\n", name, err)
	case !changed:
		t.unchanged++
		t.print(verbose, "unchanged", name)
	default:
		t.migrated++
		t.print(!t.quiet || verbose, t.verb, name)
	}
}

// print prints the result for an object.
func (t *tally) print(shown bool, verb, name string) {
	if shown {
		fmt.Fprintf(t.out, "%s: %s\n", verb, name)
	}
}

// end prints the totals. problem is an error of listing the objects.
func (t *tally) end(problem error, trial, printed bool) error {
	if !printed {
		fmt.Fprintf(t.out, "summary%s: total=%d errors=%d ignored=%d unchanged=%d migrated=%d\n", map[bool]string{true: " (dry run)"}[trial],
			t.total, t.failed, t.ignored, t.unchanged, t.migrated)
	}
	if trial && !printed && t.migrated > 0 {
		fmt.Fprintln(t.out, "to migrate these resources, run with --confirm")
	}
	if len(t.failing) > 0 {
		fmt.Fprintf(t.out, "info: to rerun only failing resources, add --include=%s\n", strings.Join(sets.List(t.failing), ","))
	}
	switch {
	case problem != nil:
		return fmt.Errorf("find objects: %w", problem)
	case t.failed > 0:
		return fmt.Errorf("%d resources failed to migrate", t.failed)
	}
	return nil
}
