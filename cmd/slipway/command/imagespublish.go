package command

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/platform/host"
)

// publisher is the name of the service account that pushes images to a project. It is the same
// account that builds use.
const publisher = "builder"

// publishTokenSeconds is the lifetime, in seconds, of the publisher's token. It is long enough to
// push a large image.
const publishTokenSeconds = 3600

func publishCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "publish IMAGE PROJECT/STREAM[:TAG]",
		Short: "Copy an image of this host into the cluster's registry, as a tag of an image stream",
		Long: "Copy an image of this host into the cluster's registry, where builds, image streams and other hosts find it. The\n" +
			"command creates a missing image stream. Images of the project openshift are available to every project.",
		Example: "  slipway images load ruby.tar\n  slipway images publish localhost/ruby:latest openshift/ruby:3.4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			start := time.Now()
			published, digest, err := publish(cmd.Context(), h, args[0], args[1])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s  (%.1fs)\n", published, digest, time.Since(start).Seconds())
			return nil
		},
	}
}

// publish pushes an image to an image stream tag, such as shop/base:latest. It returns the image's
// reference in the registry and its digest.
func publish(ctx context.Context, h *host.Host, name, to string) (published, digest string, err error) {
	project, ref, _ := strings.Cut(to, "/")
	stream, tag, hasTag := strings.Cut(ref, ":")
	if project == "" || stream == "" || hasTag && tag == "" || strings.ContainsAny(ref, "/@") {
		return "", "", fmt.Errorf("publish image as %q: must be PROJECT/STREAM:TAG", to)
	}
	to = h.RegistryNames().Stream() + "/" + project + "/" + stream + ":" + cmp.Or(tag, "latest")
	if _, err := reference.Parse(to); err != nil {
		return "", "", fmt.Errorf("publish image as %q: %w", to, err)
	}
	if h.Master.Slipway.Registry.Disabled {
		return "", "", fmt.Errorf("publish image %q: the registry is disabled in master-config.yaml (slipway.registry.disabled)", name)
	}
	address, err := h.LastRegistryAddress()
	if err != nil {
		return "", "", err
	}
	admin, err := h.AdminClient()
	if err == nil {
		err = rest.LoadTLSFiles(admin)
	}
	if err != nil {
		return "", "", err
	}
	token, err := publisherToken(ctx, admin, project)
	if err != nil {
		return "", "", err
	}
	id, err := image.Store{Socket: h.ContainerdSocket()}.Push(ctx, name, to, image.Registry{
		Address: address, Authorities: admin.CAData, User: publisher, Password: token,
	})
	return to, id.String(), err
}

// publisherToken returns a token for the project's publisher account.
func publisherToken(ctx context.Context, admin *rest.Config, project string) (string, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return "", fmt.Errorf("create cluster client: %w", err)
	}
	lifetime := int64(publishTokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	token, err := client.CoreV1().ServiceAccounts(project).CreateToken(ctx, publisher, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("publish into project %q: it does not exist, or has no service account %q yet; to create it, use oc new-project %s", project, publisher, project)
	}
	if err != nil {
		return "", fmt.Errorf("get token of %s/%s: %w", project, publisher, err)
	}
	return token.Status.Token, nil
}
