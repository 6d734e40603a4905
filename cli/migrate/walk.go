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
	"k8s.io/kubectl/pkg/cmd/util"
)

// migration is what is done to an object.
type migration struct {
	// change changes it, and says whether it was not yet as it is to be.
	change func(*unstructured.Unstructured) (bool, error)
	// save stores it and gives it as it is now; by default it is updated.
	save func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// walk visits objects of a server and migrates them. Its fields are flags.
type walk struct {
	include       []string // kinds
	files         resource.FilenameOptions
	allNamespaces bool
	confirm       bool
	fromKey       string // with NAMESPACE/NAME, or NAME for what is in no namespace; from this key on
	toKey         string // up to this key, which is left out
	print         *genericclioptions.PrintFlags

	workers int  // how many objects are migrated at once
	quiet   bool // objects without problems are not named
	chunks  int64
}

func newWalk(include ...string) *walk {
	const chunk = 500
	return &walk{include: include, print: genericclioptions.NewPrintFlags("migrated"), workers: 1, chunks: chunk}
}

func (w *walk) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&w.include, "include", w.include, "Kinds that are migrated.")
	flags.BoolVar(&w.allNamespaces, "all-namespaces", true, "Migrate objects of all namespaces, unless one is given.")
	flags.BoolVar(&w.confirm, "confirm", false, "Change the objects; otherwise it is only shown which would be.")
	flags.StringVar(&w.fromKey, "from-key", "", "Migrate objects from this key on: NAMESPACE/NAME, or NAME for those in no namespace.")
	flags.StringVar(&w.toKey, "to-key", "", "Migrate objects before this key.")
	flags.StringVarP(w.print.OutputFormat, "output", "o", "", "Print the objects as they would be, and change nothing: yaml, json or name.")
	util.AddJsonFilenameFlag(flags, &w.files.Filenames, "Files with the objects that are migrated, in place of --include.")
}

// tally counts what became of objects.
type tally struct {
	sync.Mutex
	out                                         io.Writer
	found, failed, ignored, unchanged, migrated int
	failing                                     sets.Set[string] // kinds
	verb                                        string
	quiet                                       bool
}

// run migrates what the flags choose. All objects are tried; those that could not be migrated are
// an error at the end.
func (w *walk) run(ctx context.Context, factory util.Factory, out io.Writer, m migration) error {
	printer, err := w.printer()
	if err != nil {
		return err
	}
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	found, namespaced, err := w.find(factory)
	if err != nil {
		return err
	}
	trial := printer != nil || !w.confirm
	t := &tally{out: out, failing: sets.New[string](), quiet: w.quiet || printer != nil, verb: map[bool]string{true: "would migrate", false: "migrated"}[trial]}
	if m.save == nil {
		m.save = func(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return objects.Update(ctx, object, metav1.UpdateOptions{})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.workers)
	err = found.Visit(func(info *resource.Info, err error) error {
		if err != nil {
			t.count(info, false, err)
			return nil
		}
		if !w.within(info, namespaced) {
			return nil
		}
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

// printer is what prints objects, nil if they are changed instead.
func (w *walk) printer() (printers.ResourcePrinter, error) {
	if *w.print.OutputFormat == "" {
		return nil, nil
	}
	return w.print.ToPrinter()
}

// find chooses objects, and says whether those of a single namespace are meant.
func (w *walk) find(factory util.Factory) (found resource.Visitor, namespaced bool, err error) {
	namespace, given, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, false, err
	}
	namespaced = given || !w.allNamespaces
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

// within reports whether an object has a key that the flags ask for.
func (w *walk) within(info *resource.Info, namespaced bool) bool {
	key := info.Name
	if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key = info.Namespace + "/" + info.Name
	} else if namespaced {
		return false
	}
	return (w.fromKey == "" || key >= w.fromKey) && (w.toKey == "" || key < w.toKey)
}

// errIgnored says that an object is left out: it is not there any more, takes no changes, or is of
// a kind that the migration does not know.
var errIgnored = errors.New("object is left out")

// migrate changes one object, again if somebody else has changed it meanwhile or the server is
// busy.
func (w *walk) migrate(ctx context.Context, client dynamic.Interface, info *resource.Info, m migration, trial bool) (changed bool, err error) {
	var objects dynamic.ResourceInterface = client.Resource(info.Mapping.Resource)
	if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		objects = client.Resource(info.Mapping.Resource).Namespace(info.Namespace)
	}
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return false, fmt.Errorf("read object: it is a %T", info.Object)
	}
	patience := wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1, Cap: time.Second}
	err = retry.OnError(patience, passing, func() error {
		if object == nil {
			if object, err = objects.Get(ctx, info.Name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		before := object.GetResourceVersion()
		if changed, err = m.change(object); err != nil || !changed || trial {
			return err
		}
		saved, err := m.save(ctx, objects, object)
		if err != nil {
			object = nil
			return err
		}
		changed = saved.GetResourceVersion() != before
		return nil
	})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return false, errIgnored
	}
	return changed, err
}

// passing reports whether an error may be gone in a moment.
func passing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}

// count notes what became of an object, and says it.
func (t *tally) count(info *resource.Info, changed bool, err error) {
	t.Lock()
	defer t.Unlock()
	t.found++
	name := "unknown"
	if info != nil && info.Mapping != nil {
		name = info.Mapping.Resource.Resource + "/" + info.Name
		if info.Namespace != "" {
			name += " -n " + info.Namespace
		}
	}
	switch {
	case err == errIgnored:
		t.ignored++
	case err != nil:
		t.failed++
		if info != nil && info.Mapping != nil {
			t.failing.Insert(info.Mapping.Resource.GroupResource().String())
		}
		fmt.Fprintf(t.out, "error: %s: %v\n", name, err)
	case !changed:
		t.unchanged++
	default:
		t.migrated++
		if !t.quiet {
			fmt.Fprintln(t.out, t.verb, name)
		}
	}
}

// end tells the sum. problem is why not all objects were found.
func (t *tally) end(problem error, trial, printed bool) error {
	if !printed {
		fmt.Fprintf(t.out, "summary%s: total=%d errors=%d ignored=%d unchanged=%d migrated=%d\n", map[bool]string{true: " (dry run)"}[trial],
			t.found, t.failed, t.ignored, t.unchanged, t.migrated)
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
