package host

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/workqueue"
)

// ReadyTimeout is the timeout for a program or cluster to become ready.
const ReadyTimeout = 3 * time.Minute

// Pause waits for a duration. It returns an error if ctx is done first.
func Pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Each calls do for each number below count, with limited concurrency. It joins the errors.
func Each(ctx context.Context, count int, do func(i int) error) error {
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, 16, count, func(i int) { errs[i] = do(i) })
	return errors.Join(errs...)
}

// WriteKubeconfig writes a kubeconfig with a configuration's server and token.
func WriteKubeconfig(path string, config *rest.Config) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"bench": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"bench": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}},
		CurrentContext: "bench",
	}, path)
}
