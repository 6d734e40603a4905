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

// Main is the program of a deployer pod: it carries out the deployment that the environment names (rollout.NameVariable, rollout.NamespaceVariable) with the
// rights of the pod's service account. It ends the process: with 1 when that failed.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := Deploy(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// Deploy carries out the deployment that the environment names, and logs it to out.
func Deploy(ctx context.Context, out io.Writer) error {
	config, err := connection(os.Getenv)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w; this program runs in deployer pods", err)
	}
	config.QPS, config.Burst = 50, 100 // it waits for nothing else
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

// connection is that of the pod's service account: with the token that variables have (rollout.TokenVariable), or that of the mounted volume.
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
		WarningHandler:  rest.NoWarnings{}, // that such tokens are old-fashioned
	}, nil
}
