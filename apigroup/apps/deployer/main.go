package deployer

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// Main is the main function of deployer pods. It runs the deployment that the environment variables
// rollout.NameVariable and rollout.NamespaceVariable identify, with the permissions of the pod's
// service account. It exits with status 1 if the deployment fails.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := Deploy(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Deploy runs the deployment that the environment variables identify, and logs to out.
func Deploy(ctx context.Context, out io.Writer) error {
	config, err := connection(os.Getenv)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w; run this program only in deployer pods", err)
	}
	config.QPS, config.Burst = 50, 100 // the default limits would slow the deployment down
	core, err := coreclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	d := &Deployer{
		Core: core, Tags: images, Out: out,
		Namespace: os.Getenv(rollout.NamespaceVariable), Deployment: os.Getenv(rollout.NameVariable),
	}
	return d.Run(ctx)
}

// connection returns a client configuration for the pod's service account. It reads the token from
// the rollout.TokenVariable environment variable or from the mounted volume.
func connection(variable func(string) string) (*rest.Config, error) {
	token, host, port := variable(rollout.TokenVariable), variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT")
	if token == "" {
		return rest.InClusterConfig()
	}
	if host == "" || port == "" {
		return nil, rest.ErrNotInCluster
	}
	return &rest.Config{
		Host: "https://" + net.JoinHostPort(host, port), BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(variable(rollout.AuthorityVariable))},
		WarningHandler:  rest.NoWarnings{}, // discard warnings about legacy tokens
	}, nil
}
