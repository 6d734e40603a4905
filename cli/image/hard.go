package image

import (
	"context"
	"fmt"

	"github.com/docker/go-units"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// hardPruning is `oc adm prune registry`.
type hardPruning struct {
	genericiooptions.IOStreams
	registry asking
	at       place
	confirm  bool
}

// NewPruneRegistry returns `oc adm prune registry`, what `dockerregistry -prune=check` and
// `-prune=delete` do in OpenShift 3.11.
func NewPruneRegistry(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	p := &hardPruning{IOStreams: streams}
	command := &cobra.Command{
		Use: "registry", Short: "Remove what no image refers to from the registry's disk",
		Long: `Remove manifests and layers from the cluster's registry that no image of the API server refers to: what pushes left that came to nothing, what
images had that were removed without the registry, and projects that are gone.

What is younger than an hour stays, since a push under way may need it. Pushes wait meanwhile. Without --confirm nothing is removed, only shown.`,
		Example: `  # See what would go
  oc adm prune registry

  # Remove it
  oc adm prune registry --confirm`,
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			config, err := factory.ToRESTConfig()
			util.CheckErr(err)
			p.registry, err = p.at.connect(config)
			util.CheckErr(err)
			images, err := imageclient.NewForConfig(config)
			util.CheckErr(err)
			streams, err := images.ImageStreams(metav1.NamespaceAll).List(command.Context(), metav1.ListOptions{})
			util.CheckErr(err)
			util.CheckErr(p.run(command.Context(), addressOf(streams.Items)))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&p.confirm, "confirm", false, "Remove it.")
	p.at.flags(flags)
	return command
}

func (p *hardPruning) run(ctx context.Context, address string) error {
	summary := "\nDeleted %d blobs\nFreed up %s of disk space\n"
	if !p.confirm {
		fmt.Fprintln(p.ErrOut, "Dry run enabled - no modifications will be made. Add --confirm to remove it")
		summary = "\nWould delete %d blobs\nWould free up %s of disk space\n"
	}
	removed, err := p.registry(ctx, address, record.GarbageRequest{Everything: true, DryRun: !p.confirm})
	if err != nil {
		return err
	}
	report := newReport(p.Out)
	report.registry(removed)
	report.flush()
	fmt.Fprintf(p.Out, summary, len(removed.Blobs), units.BytesSize(float64(removed.Bytes)))
	return nil
}
