package adm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/cli/group"
	"github.com/slipway-platform/slipway/cli/image"
	"github.com/slipway-platform/slipway/cli/objects"
)

// newPrune returns the `oc adm prune` command.
func newPrune(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "prune", Short: "Remove older versions of resources from the server",
		Long: "Remove old objects. Without --confirm, the command only lists them.",
		Run:  util.DefaultSubCommandRun(streams.ErrOut),
	}
	groups := group.NewGroupsPrune(factory, streams)
	groups.Use = "groups" + groups.Use[len("prune"):]
	command.AddCommand(groups, newPruneAuth(factory, streams),
		image.NewPrune(factory, streams), image.NewPruneRegistry(factory, streams),
		(&pruning{factory: factory, streams: streams, kind: "builds", resource: buildv1.GroupVersion.WithResource("builds"), find: oldBuilds}).command(),
		(&pruning{factory: factory, streams: streams, kind: "deployments", resource: corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), find: oldDeployments}).command(),
	)
	return command
}

// pruning holds the state of `oc adm prune builds` or `oc adm prune deployments`.
type pruning struct {
	factory  util.Factory
	streams  genericiooptions.IOStreams
	kind     string
	resource schema.GroupVersionResource
	find     func(ctx context.Context, client dynamic.Interface, namespace string) ([]prunable, error)

	keep    limits
	confirm bool
}

// limits determines which objects are kept.
type limits struct {
	complete, failed int           // number of objects to keep per configuration
	younger          time.Duration // keep objects that are younger than this
	orphans          bool          // also prune objects whose configuration no longer exists
}

// prunable is a finished build or deployment.
type prunable struct {
	metav1.ObjectMeta
	config           string // name of the configuration
	orphan, complete bool
}

func (p *pruning) command() *cobra.Command {
	command := &cobra.Command{
		Use: p.kind, Short: "Remove old completed and failed " + p.kind,
		Long: fmt.Sprintf("Remove %s that have ended, in all projects or in the project of --namespace, except the newest of each configuration.", p.kind),
		Example: fmt.Sprintf(`  # List what the command would remove
  oc adm prune %[1]s --orphans

  # Remove these objects
  oc adm prune %[1]s --orphans --confirm`, p.kind),
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			util.CheckErr(p.validate(command))
			util.CheckErr(p.run(command))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&p.confirm, "confirm", false, "Remove the objects. Without this flag, the command only lists them.")
	flags.BoolVar(&p.keep.orphans, "orphans", false, "Also remove objects whose configuration is deleted.")
	flags.DurationVar(&p.keep.younger, "keep-younger-than", time.Hour, "Keep objects that are younger than this.")
	flags.IntVar(&p.keep.complete, "keep-complete", 5, "Number of complete objects to keep for each configuration.")
	flags.IntVar(&p.keep.failed, "keep-failed", 1, "Number of failed objects to keep for each configuration.")
	return command
}

func (p *pruning) validate(command *cobra.Command) error {
	if p.keep.complete < 0 || p.keep.failed < 0 || p.keep.younger < 0 {
		return util.UsageErrorf(command, "--keep-complete, --keep-failed and --keep-younger-than must not be negative")
	}
	return nil
}

func (p *pruning) run(command *cobra.Command) error {
	namespace := metav1.NamespaceAll
	if flag := command.Flag("namespace"); flag != nil && flag.Changed {
		namespace = flag.Value.String()
	}
	client, err := p.factory.DynamicClient()
	if err != nil {
		return err
	}
	all, err := p.find(command.Context(), client, namespace)
	if err != nil {
		return err
	}
	if !p.confirm {
		fmt.Fprintf(p.streams.ErrOut, "Dry run enabled - no modifications will be made. Add --confirm to remove %s\n", p.kind)
	}
	table := tabwriter.NewWriter(p.streams.Out, 0, 8, 1, '\t', 0)
	fmt.Fprintln(table, "NAMESPACE\tNAME")
	for _, old := range p.keep.exceeding(all, time.Now()) {
		if p.confirm {
			err := client.Resource(p.resource).Namespace(old.Namespace).Delete(command.Context(), old.Name, metav1.DeleteOptions{
				Preconditions: metav1.NewUIDPreconditions(string(old.UID)), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
			})
			if err != nil && !apierrors.IsNotFound(err) {
				_ = table.Flush() // print the objects that were deleted before the error
				return err
			}
		}
		fmt.Fprintf(table, "%s\t%s\n", old.Namespace, old.Name)
	}
	return table.Flush()
}

// exceeding returns the objects to prune, sorted by namespace and then from oldest to newest. It
// sorts all in place, from newest to oldest.
func (k limits) exceeding(all []prunable, now time.Time) (old []prunable) {
	slices.SortFunc(all, func(a, b prunable) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	type group struct {
		namespace, config string
		complete          bool
	}
	counts := map[group]int{}
	for _, object := range all {
		of, limit := group{object.Namespace, object.config, object.complete}, k.failed
		if object.complete {
			limit = k.complete
		}
		counts[of]++
		switch {
		case now.Sub(object.CreationTimestamp.Time) < k.younger:
		case object.orphan && k.orphans, !object.orphan && counts[of] > limit:
			old = append(old, object)
		}
	}
	slices.SortStableFunc(old, func(a, b prunable) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	return old
}

func oldBuilds(ctx context.Context, client dynamic.Interface, namespace string) (all []prunable, err error) {
	configs, err := names(ctx, client, buildv1.GroupVersion.WithResource("buildconfigs"), namespace)
	if err != nil {
		return nil, err
	}
	builds, err := objects.List[buildv1.Build](ctx, client, buildv1.GroupVersion.WithResource("builds"), namespace, metav1.ListOptions{})
	for i := range builds {
		build := &builds[i]
		if config := instantiate.ConfigOf(build); instantiate.Ended(build) {
			all = append(all, prunable{build.ObjectMeta, config, !configs[build.Namespace+"/"+config], build.Status.Phase == buildv1.BuildPhaseComplete})
		}
	}
	return all, err
}

// oldDeployments returns the finished deployments that have no pods.
func oldDeployments(ctx context.Context, client dynamic.Interface, namespace string) (all []prunable, err error) {
	configs, err := names(ctx, client, appsv1.GroupVersion.WithResource("deploymentconfigs"), namespace)
	if err != nil {
		return nil, err
	}
	deployments, err := objects.List[corev1.ReplicationController](ctx, client, corev1.SchemeGroupVersion.WithResource("replicationcontrollers"), namespace, metav1.ListOptions{})
	for i := range deployments {
		rc := &deployments[i]
		config := rollout.ConfigOf(rc)
		if config != "" && rollout.Ended(rc) && ptr.Deref(rc.Spec.Replicas, 1) == 0 && rc.Status.Replicas == 0 {
			all = append(all, prunable{rc.ObjectMeta, config, !configs[rc.Namespace+"/"+config], rollout.Phase(rc) == appsv1.DeploymentStatusComplete})
		}
	}
	return all, err
}

// names returns the names of a resource's objects as a set. Each name has the form
// <namespace>/<name>.
func names(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string) (map[string]bool, error) {
	all, err := objects.List[metav1.PartialObjectMetadata](ctx, client, resource, namespace, metav1.ListOptions{})
	configs := map[string]bool{}
	for _, object := range all {
		configs[object.Namespace+"/"+object.Name] = true
	}
	return configs, err
}
