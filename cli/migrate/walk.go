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
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd/util"
)

// migration defines how objects are changed.
type migration struct {
	// change changes an object in place and reports whether the object changed.
	change func(*unstructured.Unstructured) (bool, error)
	// save stores an object and returns the stored object. If save is nil, update is used.
	save func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// walk migrates the objects that the flags select.
type walk struct {
	include       []string // kinds to migrate
	files         resource.FilenameOptions
	allNamespaces bool
	confirm       bool
	fromKey       string // first key to migrate: NAMESPACE/NAME, or NAME if cluster-scoped
	toKey         string // first key after the range
	print         *genericclioptions.PrintFlags

	workers  int  // number of objects that are migrated concurrently
	quiet    bool // print only objects that have problems
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
	flags.BoolVar(&w.confirm, "confirm", false, "Change the objects. Without this flag, the command only lists the changes.")
	flags.StringVar(&w.fromKey, "from-key", "", "First key to migrate: NAMESPACE/NAME, or NAME of cluster-scoped objects.")
	flags.StringVar(&w.toKey, "to-key", "", "Key after the last object to migrate, in the format of --from-key.")
	flags.StringVarP(w.print.OutputFormat, "output", "o", "", "Print the changed objects without storing them: yaml, json or name.")
	util.AddJsonFilenameFlag(flags, &w.files.Filenames, "Files with the objects to migrate, instead of --include.")
}

// tally counts and prints the results.
type tally struct {
	sync.Mutex
	out                                         io.Writer
	total, failed, ignored, unchanged, migrated int
	failing                                     sets.Set[string] // kinds with failures
	verb                                        string
	quiet                                       bool
}

// run migrates the selected objects concurrently. If it cannot migrate an object, it continues with
// the other objects, and returns an error at the end.
func (w *walk) run(ctx context.Context, factory util.Factory, out io.Writer, m migration) error {
	printer, err := w.printer()
	if err != nil {
		return err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
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
		m.save = update
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

// update stores an object and returns the result.
func update(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return objects.Update(ctx, object, metav1.UpdateOptions{})
}

// progress prints each kind when its first object is visited. The zero value prints nothing.
type progress struct {
	out     io.Writer
	kind    string
	visited int
}

// visit counts an object and prints its kind if the kind differs from the previous one.
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

// printer returns the printer that -o selects, or nil if -o is not set.
func (w *walk) printer() (printers.ResourcePrinter, error) {
	if *w.print.OutputFormat == "" {
		return nil, nil
	}
	return w.print.ToPrinter()
}

// find selects objects. namespaced means that the selection is limited to one namespace.
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

// within reports whether an object is in the range from --from-key to --to-key. If namespaced is
// true, cluster-scoped objects are out of range.
func (w *walk) within(info *resource.Info, namespaced bool) bool {
	key := info.Name
	if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key = info.Namespace + "/" + info.Name
	} else if namespaced {
		return false
	}
	return (w.fromKey == "" || key >= w.fromKey) && (w.toKey == "" || key < w.toKey)
}

// errIgnored is the error for a skipped object. The object has been deleted or cannot be updated,
// or the migration does not support its kind.
var errIgnored = errors.New("object is skipped")

// migrate migrates an object, and reports whether the object has changed. It retries after
// temporary errors.
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
	err = retry.OnError(backoff, isTemporary, func() error {
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
	return changed && err == nil, err
}

// isTemporary reports whether an error is a conflict or means that the server is overloaded, so
// that a retry can succeed.
func isTemporary(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}

// count counts and prints the result for an object.
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

// end prints the totals. problem is the error from listing the objects, or nil.
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
