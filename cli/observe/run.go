package observe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Types of changes.
const (
	synced  = "Sync"
	added   = "Added"
	updated = "Updated"
	deleted = "Deleted"
)

// change is a change to an object.
type change struct {
	kind   string
	object *unstructured.Unstructured
}

// errDone ends an observation successfully.
var errDone = errors.New("done")

// run observes objects until ctx is done, --exit-after has elapsed, --once is complete, or the
// maximum number of errors is reached.
func (o *observation) run(ctx context.Context) error {
	ready := make(chan struct{})
	work, ctx := errgroup.WithContext(ctx)
	changes, problems, err := o.subscribe(ctx)
	if err != nil {
		return err
	}
	if o.listenAddress != "" {
		serve, err := o.metrics.listen(o.listenAddress, ready)
		if err != nil {
			return err
		}
		work.Go(func() error { return serve(ctx) })
	}
	work.Go(func() error { o.informer.RunWithContext(ctx); return nil })
	initial := make(chan struct{})
	work.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), o.informer.HasSynced) {
			close(initial)
		}
		return nil
	})
	work.Go(func() error { return o.loop(ctx, changes, problems, initial, ready) })
	err = work.Wait()
	if o.printMetrics {
		err = errors.Join(err, o.metrics.print(o.ErrOut))
	}
	if !errors.Is(err, errDone) {
		return err
	}
	return nil
}

// subscribe returns a channel for the changes after the initial list, and a channel for the errors
// of list and watch requests.
func (o *observation) subscribe(ctx context.Context) (<-chan change, <-chan error, error) {
	changes, problems := make(chan change), make(chan error)
	send := func(kind string, object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if item, ok := object.(*unstructured.Unstructured); ok {
			select {
			case changes <- change{kind, item}:
			case <-ctx.Done():
			}
		}
	}
	_, err := o.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				send(added, object)
			}
		},
		UpdateFunc: func(_, object any) { send(updated, object) },
		DeleteFunc: func(object any) { send(deleted, object) },
	})
	watch := o.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		select {
		case problems <- err:
		case <-ctx.Done():
		}
	})
	return changes, problems, errors.Join(err, watch)
}

// loop handles changes, one at a time. When initial is closed, the initial list is complete. loop
// then closes ready and handles all objects.
func (o *observation) loop(ctx context.Context, changes <-chan change, problems <-chan error, initial <-chan struct{}, ready chan<- struct{}) error {
	var end, resync <-chan time.Time
	if o.exitAfter > 0 {
		end = time.After(o.exitAfter)
	}
	if o.resync > 0 {
		ticker := time.NewTicker(o.resync)
		defer ticker.Stop()
		resync = ticker.C
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			fmt.Fprintf(o.ErrOut, "Shutting down after %s ...\n", o.exitAfter)
			return errDone
		case problem := <-problems:
			err = o.count(problem)
		case <-initial:
			initial = nil
			close(ready)
			if err = o.all(ctx); err == nil && o.once {
				return errDone
			}
		case <-resync:
			if initial == nil {
				err = o.all(ctx)
			}
		case change := <-changes:
			err = o.handle(ctx, change)
		}
		if err != nil {
			return err
		}
	}
}

// all handles all existing objects. If the --names command prints the name of an object that no
// longer exists, all handles its deletion.
func (o *observation) all(ctx context.Context) error {
	o.printComment("Sync started")
	store := o.informer.GetStore()
	if o.once && len(o.names) == 0 && len(store.ListKeys()) == 0 {
		o.printComment("Nothing to sync, exiting immediately")
	}
	for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
		object, exists, err := store.GetByKey(key)
		item, ok := object.(*unstructured.Unstructured)
		if err != nil || !exists || !ok {
			continue // the object was deleted; its deletion is a separate change
		}
		if err := o.handle(ctx, change{synced, item}); err != nil {
			return err
		}
	}
	if len(o.names) > 0 {
		names, err := o.knownNames(ctx)
		if err != nil {
			return fmt.Errorf("list the known names: %w", err)
		}
		for _, key := range names {
			if _, exists, err := store.GetByKey(key); exists || err != nil {
				continue
			}
			object := &unstructured.Unstructured{Object: map[string]any{}}
			if namespace, name, ok := strings.Cut(key, "/"); ok {
				object.SetNamespace(namespace)
				object.SetName(name)
			} else {
				object.SetName(key)
			}
			if err := o.handle(ctx, change{deleted, object}); err != nil {
				return err
			}
		}
	}
	o.printComment("Sync ended")
	return nil
}

// knownNames runs the --names command and returns the names that the command prints.
func (o *observation) knownNames(ctx context.Context) (names []string, err error) {
	var out []byte
	err = o.retried(func() error {
		command := exec.CommandContext(ctx, o.names[0], o.names[1:]...)
		command.Stderr = o.ErrOut
		started := time.Now()
		out, err = command.Output()
		o.metrics.listed(time.Since(started), command.ProcessState.ExitCode())
		return err
	})
	return strings.Fields(string(out)), err
}

// handle runs the command for a change. It does not return an error until the maximum number of
// errors is reached.
func (o *observation) handle(ctx context.Context, item change) error {
	o.metrics.observed.WithLabelValues(item.kind).Inc()
	words := slices.Clone(o.each)
	if item.kind == deleted {
		words = slices.Clone(o.remove)
	}
	silent := len(words) == 0
	if o.namespaced {
		words = append(words, item.object.GetNamespace())
	}
	words = append(words, item.object.GetName())
	if item.kind != deleted {
		values, err := o.values(item.object)
		if err != nil {
			return err // the template fails for every object
		}
		words = append(words, values...)
	}
	o.printComment(item.kind + " " + item.object.GetResourceVersion() + "\t" + line(words))
	if silent {
		return nil
	}
	environment := os.Environ()
	if o.typeVariable != "" {
		environment = append(environment, o.typeVariable+"="+item.kind)
	}
	if o.objectVariable != "" {
		text, err := item.object.MarshalJSON()
		if err != nil && item.kind != deleted {
			return o.count(err)
		}
		environment = append(environment, o.objectVariable+"="+string(text))
	}
	err := o.retried(func() error {
		command := exec.CommandContext(ctx, words[0], words[1:]...)
		command.Env, command.Stdout, command.Stderr = environment, o.Out, o.ErrOut
		started := time.Now()
		err := command.Run()
		o.metrics.executed(item.kind, time.Since(started), command.ProcessState.ExitCode())
		return err
	})
	if err != nil && ctx.Err() == nil {
		return o.count(fmt.Errorf("run %q for %q: %w", words[0], item.object.GetName(), err))
	}
	return nil
}

// retried calls run. If the command exits with the code in --retry-on-exit-code, retried calls run
// again, up to --retry-count times.
func (o *observation) retried(run func() error) error {
	for tries := 0; ; tries++ {
		err := run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || o.retryCode == 0 || exit.ExitCode() != o.retryCode || tries >= o.retryCount {
			return err
		}
		if klog.V(4).Enabled() {
			fmt.Fprintf(o.ErrOut, "retrying command: %v\n", err)
		}
	}
}

// count counts and prints an error. It returns an error once the maximum number of errors is
// reached.
func (o *observation) count(err error) error {
	fmt.Fprintf(o.ErrOut, "error: %v\n", err)
	if o.failures++; o.maximumErrors >= 0 && o.failures >= o.maximumErrors {
		return fmt.Errorf("reached maximum error limit of %d, exiting", o.maximumErrors)
	}
	return nil
}

// printComment prints a comment line with the time, unless --no-headers is set.
func (o *observation) printComment(text string) {
	if !o.quiet {
		fmt.Fprintf(o.Out, "# %s %s\n", time.Now().Format(time.RFC3339), text)
	}
}

// line returns a command line in which special characters are quoted, so that an object's content
// cannot control the terminal.
func line(words []string) string {
	var all []string
	for _, word := range words {
		if quoted := strconv.Quote(word); word == "" || quoted != `"`+word+`"` || strings.Contains(word, " ") {
			word = quoted
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}
