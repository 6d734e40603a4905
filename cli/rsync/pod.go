package rsync

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/slipway-platform/slipway/cli/objects"
)

// pod identifies a container in a pod. If container is empty, it is kubectl's default container.
type pod struct{ namespace, name, container string }

// connect returns a function that runs commands in the container, and a function that forwards
// ports to the pod. It returns an error if the pod is not running.
func (p pod) connect(ctx context.Context, factory util.Factory) (inContainer, forwarder, error) {
	clients, err := factory.KubernetesClientSet()
	if err != nil {
		return nil, nil, err
	}
	pod, err := clients.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return nil, nil, fmt.Errorf("pod %q is %s; files can be copied only while it runs", p.name, pod.Status.Phase)
	}
	container, err := podcmd.FindOrDefaultContainerByName(pod, p.container, true, nil)
	if err != nil {
		return nil, nil, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	in := func(ctx context.Context, command []string, streams genericiooptions.IOStreams) error {
		return objects.Exec(ctx, config, p.namespace, p.name, container.Name, command, streams)
	}
	to := client.Post().Namespace(p.namespace).Resource("pods").Name(p.name).SubResource("portforward").URL()
	return in, func(ctx context.Context, port int, use func(int) error) error {
		return forward(ctx, config, to, port, use)
	}, nil
}

// forward forwards a port on this machine to a pod's port until use returns. to is the URL of the
// pod's port-forward subresource.
func forward(ctx context.Context, config *rest.Config, to *url.URL, port int, use func(local int) error) error {
	dialer, err := dial(config, to)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	ready, done := make(chan struct{}), make(chan error, 1)
	ports, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf(":%d", port)}, ready, io.Discard, io.Discard)
	if err != nil {
		stop()
		return fmt.Errorf("forward port %d: %w", port, err)
	}
	go func() {
		defer close(done)
		done <- ports.ForwardPorts()
	}()
	defer func() { stop(); <-done }()
	select {
	case err := <-done:
		return fmt.Errorf("forward port %d: %w", port, err)
	case <-ready:
	}
	local, err := ports.GetPorts()
	if err != nil {
		return fmt.Errorf("forward port %d: %w", port, err)
	}
	return use(int(local[0].Local))
}

// dial returns a dialer that uses WebSockets. Like kubectl, the dialer falls back to SPDY if the
// server does not support WebSockets.
func dial(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	return portforward.NewFallbackDialerForStreaming(websocket, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// remoteShell returns the `oc rsh` command that rsync runs. The command has the same connection
// flags as command.
func remoteShell(namespace, container string, command *cobra.Command) []string {
	words := os.Args[:1]
	if len(os.Args) > 1 && os.Args[1] == "oc" { // this program is slipway, which contains the client
		words = os.Args[:2]
	}
	words = append(words[:len(words):len(words)], "rsh", "-T", "--namespace="+namespace)
	for _, name := range []string{"kubeconfig", "context", "cluster", "user", "server", "as"} {
		if flag := command.Flag(name); flag != nil && flag.Changed {
			words = append(words, "--"+name+"="+flag.Value.String())
		}
	}
	if container != "" {
		words = append(words, "--container="+container)
	}
	return words
}
