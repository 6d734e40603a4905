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

// hardPruning holds the state of `oc adm prune registry`.
type hardPruning struct {
	genericiooptions.IOStreams
	registry requestFunc
	at       place
	confirm  bool
}

// NewPruneRegistry returns the `oc adm prune registry` command. It replaces OpenShift 3.11's
// `dockerregistry -prune=check` and `-prune=delete`.
func NewPruneRegistry(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	p := &hardPruning{IOStreams: streams}
	command := &cobra.Command{
		Use: "registry", Short: "Remove unreferenced content from the registry's storage",
		Long: `Remove manifests and layers that no image in the API server uses from the cluster's registry: content of failed pushes, of images
that were removed only from the API server, and of deleted projects.

The command keeps content that is younger than an hour, because an unfinished push can need it. Pushes wait until the command ends. Without --confirm, the command
lists the content and removes nothing.`,
		Example: `  # List what the command would remove
  oc adm prune registry

  # Remove this content
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
	flags.BoolVar(&p.confirm, "confirm", false, "Remove the content. Without this flag, the command only lists the content.")
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
