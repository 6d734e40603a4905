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

// everything stands for all kinds that the server stores.
const everything = "*"

// newStorage returns `oc adm migrate storage`.
func newStorage(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	w := newWalk(everything)
	w.workers, w.quiet = 16, true
	bandwidth := 10
	command := &cobra.Command{
		Use: "storage", Short: "Update the stored version of API objects",
		Long: `Have the server store its objects anew.

Each object is read and written as it is. The server stores it if that would look different now: in another version, with another key of encryption, or with
defaults that it did not have before. Objects that others change meanwhile are tried again. Events are left out, since they are soon gone, unless --include names them.`,
		Example: `  # After the key that secrets are encrypted with has changed
  oc adm migrate storage --include=secrets

  # Everything, as quickly as the server can
  oc adm migrate storage --bandwidth=0

  # Pods of the projects whose names begin with "team-"
  oc adm migrate storage --include=pods --from-key=team- --to-key=team.`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(cobra.NoArgs(command, args))
			util.CheckErr(storeAnew(command.Context(), factory, streams, w, bandwidth))
		},
	}
	w.addFlags(command)
	command.Flags().IntVar(&bandwidth, "bandwidth", bandwidth, "Megabits per second that the objects may take on the network; 0 does not limit them.")
	for _, flag := range []string{"confirm", "output"} {
		// The flag exists.
		_ = command.Flags().MarkDeprecated(flag, "objects are stored as they are: there is nothing to try or to show")
	}
	return command
}

func storeAnew(ctx context.Context, factory util.Factory, streams genericiooptions.IOStreams, w *walk, bandwidth int) error {
	if bandwidth < 0 {
		return fmt.Errorf("--bandwidth %d: must be at least 0", bandwidth)
	}
	w.confirm, *w.print.OutputFormat = true, ""
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

// notStored are views of what is stored under another name, and events.
func notStored() []schema.GroupResource {
	return []schema.GroupResource{
		{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"},
		{Group: "project.openshift.io", Resource: "projects"},
		{Group: "image.openshift.io", Resource: "imagestreamtags"}, {Group: "image.openshift.io", Resource: "imagetags"},
		{Group: "authorization.openshift.io", Resource: "clusterroles"}, {Group: "authorization.openshift.io", Resource: "clusterrolebindings"},
		{Group: "authorization.openshift.io", Resource: "roles"}, {Group: "authorization.openshift.io", Resource: "rolebindings"},
	}
}

// stored are the kinds that a server stores, as RESOURCE.GROUP.
func stored(client discovery.DiscoveryInterface) (kinds []string, err error) {
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("list the kinds of the server: %w", err)
	}
	if err != nil { // those of a server behind this one that does not answer
		return nil, fmt.Errorf("list the kinds of the server: %w; choose some with --include", err)
	}
	left := notStored()
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list the kinds of the server: %w", err)
		}
		for _, one := range list.APIResources {
			kind := schema.GroupResource{Group: version.Group, Resource: one.Name}
			canBoth := slices.Contains(one.Verbs, "list") && slices.Contains(one.Verbs, "update")
			if canBoth && !strings.Contains(one.Name, "/") && !slices.Contains(left, kind) {
				kinds = append(kinds, kind.String())
			}
		}
	}
	return kinds, nil
}

// traffic holds objects back that would take more of the network than they may.
type traffic struct{ *rate.Limiter }

// newTraffic allows some megabits per second; 0 is no limit.
func newTraffic(megabits int) traffic {
	const bytesOfMegabit = 1_000_000 / 8
	if megabits == 0 {
		return traffic{rate.NewLimiter(rate.Inf, 0)}
	}
	return traffic{rate.NewLimiter(rate.Limit(megabits*bytesOfMegabit), megabits*bytesOfMegabit)}
}

// take waits until an object may go to the server; it came from there before.
func (t traffic) take(ctx context.Context, object *unstructured.Unstructured) error {
	if t.Limit() == rate.Inf {
		return nil
	}
	data, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("measure object: %w", err)
	}
	for left := 2 * len(data); left > 0; left -= t.Burst() {
		if err := t.WaitN(ctx, min(left, t.Burst())); err != nil {
			return err
		}
	}
	return nil
}
