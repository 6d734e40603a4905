package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
)

// everything is the --include value that selects all kinds that the server stores.
const everything = "*"

// newStorage returns the `oc adm migrate storage` command.
func newStorage(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	w := newWalk(everything)
	w.workers, w.quiet = 16, true
	bandwidth := 10
	command := &cobra.Command{
		Use: "storage", Short: "Update the stored version of API objects",
		Long: `Rewrite objects in the server's storage.

The command reads each object and writes it unchanged, 16 objects at the same time. The server stores an object only if its stored form would change: another version, another encryption key, or new
defaults. The command retries after conflicts, and prints its progress to standard error. It omits events, which expire soon, unless --include contains them.`,
		Example: `  # After a change of the encryption key for secrets
  oc adm migrate storage --include=secrets

  # Rewrite everything, without a bandwidth limit
  oc adm migrate storage --bandwidth=0

  # Rewrite the pods of projects whose names start with "team-"
  oc adm migrate storage --include=pods --from-key=team- --to-key=team.`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(cobra.NoArgs(command, args))
			util.CheckErr(storeAnew(command.Context(), factory, streams, w, bandwidth))
		},
	}
	w.addFlags(command)
	command.Flags().IntVar(&bandwidth, "bandwidth", bandwidth, "Maximum megabits per second on the network. 0: unlimited.")
	for _, flag := range []string{"confirm", "output"} {
		// The call cannot fail, because the flag exists.
		_ = command.Flags().MarkDeprecated(flag, "storage migration does not support dry run, this flag is ignored")
	}
	return command
}

func storeAnew(ctx context.Context, factory util.Factory, streams genericiooptions.IOStreams, w *walk, bandwidth int) error {
	if bandwidth < 0 {
		return fmt.Errorf("--bandwidth %d: must be at least 0", bandwidth)
	}
	w.confirm, *w.print.OutputFormat = true, ""
	w.progress.out = streams.ErrOut
	if at := slices.Index(w.include, everything); at >= 0 && len(w.files.Filenames) == 0 {
		client, err := factory.ToDiscoveryClient()
		if err != nil {
			return err
		}
		client.Invalidate()
		all, err := stored(client)
		if err != nil {
			return err
		}
		w.include = slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Delete(w.include, at, at+1), all))))
	}
	limit := newTraffic(bandwidth)
	return w.run(ctx, factory, streams.Out, migration{
		change: func(*unstructured.Unstructured) (bool, error) { return true, nil },
		save: func(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if err := limit.take(ctx, object); err != nil {
				return nil, err
			}
			return objects.Update(ctx, object, metav1.UpdateOptions{})
		},
	})
}

// notStored returns the resources that storage migration skips: events, and resources that only
// represent objects of other resources.
func notStored() []schema.GroupResource {
	return []schema.GroupResource{
		{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
		{Group: "project.openshift.io", Resource: "projects"},
		{Group: "image.openshift.io", Resource: "imagestreamtags"}, {Group: "image.openshift.io", Resource: "imagetags"},
		{Group: "authorization.openshift.io", Resource: "clusterroles"}, {Group: "authorization.openshift.io", Resource: "clusterrolebindings"},
		{Group: "authorization.openshift.io", Resource: "roles"}, {Group: "authorization.openshift.io", Resource: "rolebindings"},
	}
}

// stored returns the resources that a server stores, in the form RESOURCE.GROUP. These are all
// resources that can be listed and updated, except for the resources that notStored returns.
func stored(client discovery.DiscoveryInterface) (kinds []string, err error) {
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("list server kinds: %w", err)
	}
	if err != nil { // an aggregated API server is unavailable
		return nil, fmt.Errorf("list server kinds: %w; select some with --include", err)
	}
	resources := notStored()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list server kinds: %w", err)
		}
		for _, resource := range list.APIResources {
			kind := schema.GroupResource{Group: version.Group, Resource: resource.Name}
			canBoth := slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "update")
			if canBoth && !strings.Contains(resource.Name, "/") && !slices.Contains(resources, kind) {
				kinds = append(kinds, kind.String())
			}
		}
	}
	return kinds, nil
}

// traffic delays requests to stay within the bandwidth limit.
type traffic struct{ *rate.Limiter }

// newTraffic returns a limiter for a bandwidth in megabits per second. 0 means that the bandwidth
// is not limited.
func newTraffic(megabits int) traffic {
	const bytesOfMegabit = 1_000_000 / 8
	if megabits == 0 {
		return traffic{rate.NewLimiter(rate.Inf, 0)}
	}
	return traffic{rate.NewLimiter(rate.Limit(megabits*bytesOfMegabit), megabits*bytesOfMegabit)}
}

// take waits until the bandwidth limit allows an object to be sent. It counts the object's size
// twice, because the client has also received the object.
func (t traffic) take(ctx context.Context, object *unstructured.Unstructured) error {
	if t.Limit() == rate.Inf {
		return nil
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("measure object: %w", err)
	}
	for remaining := 2 * len(data); remaining > 0; remaining -= t.Burst() {
		if err := t.WaitN(ctx, min(remaining, t.Burst())); err != nil {
			return err
		}
	}
	return nil
}
