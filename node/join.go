package node

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/certificate/csr"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap"

	"github.com/slipway-platform/slipway/pki"
)

// clientUsages are the key usages of client certificates.
func clientUsages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
}

// RequestCredentials requests the certificates for a host that joins the cluster.
// bootstrapKubeconfig is the path of a file with the join token and a master's address. kubeconfig
// is the path of a file that RequestCredentials writes and that the caller can delete afterward.
func RequestCredentials(ctx context.Context, m pki.Member, bootstrapKubeconfig, kubeconfig string) error {
	// Upstream's kubelet requests its certificate in the same way.
	err := bootstrap.LoadClientCert(ctx, kubeconfig, bootstrapKubeconfig, m.KubeletDir(), types.NodeName(m.NodeName))
	if err != nil {
		return fmt.Errorf("request certificate of node %q: %w", m.NodeName, err)
	}
	client, err := pki.NewClient(kubeconfig)
	if err != nil {
		return err
	}
	requests, ctx := errgroup.WithContext(ctx)
	for _, c := range m.Clients() {
		requests.Go(func() error { return requestClient(ctx, m, client, c) })
	}
	return requests.Wait()
}

// requestClient requests a component's certificate. It replaces an existing certificate, because
// the cluster might reject a certificate that was issued before the host rejoined.
func requestClient(ctx context.Context, m pki.Member, client kubernetes.Interface, c pki.NodeClient) error {
	store, err := storeOf(m, c)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key of %s: %w", c.User, err)
	}
	subject := m.Subject(c)
	request, err := cert.MakeCSR(crypto.Signer(key), &subject, nil, nil)
	if err != nil {
		return fmt.Errorf("create signing request of %s: %w", c.User, err)
	}
	name, uid, err := csr.RequestCertificate(client, request, "", certificatesv1.KubeAPIServerClientSignerName, nil, clientUsages(), key)
	if err != nil {
		return fmt.Errorf("request certificate of %s: %w", c.User, err)
	}
	issued, err := csr.WaitForCertificate(ctx, client, name, uid)
	if err != nil {
		return fmt.Errorf("wait for certificate of %s: %w", c.User, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode key of %s: %w", c.User, err)
	}
	_, err = store.Update(issued, encoded)
	return err
}

func storeOf(m pki.Member, c pki.NodeClient) (certificate.FileStore, error) {
	store, err := certificate.NewFileStore(c.Name, m.StoreDir(), m.StoreDir(), "", "")
	if err != nil {
		return nil, fmt.Errorf("open certificates of %s: %w", c.User, err)
	}
	return store, nil
}

// Certificates is the component that renews a joined host's client certificates. The kubelet renews
// its own certificates.
type Certificates struct {
	Member pki.Member
}

// Name returns the component's name.
func (*Certificates) Name() string { return "certificates" }

// Run renews certificates until ctx is done.
func (c *Certificates) Run(ctx context.Context, ready func()) error {
	var managers []certificate.Manager
	for _, client := range c.Member.Clients() {
		manager, err := c.manager(client)
		if err != nil {
			return err
		}
		managers = append(managers, manager)
	}
	for _, manager := range managers {
		manager.Start()
	}
	ready()
	<-ctx.Done()
	var stops sync.WaitGroup
	for _, manager := range managers {
		stops.Go(manager.Stop)
	}
	stops.Wait()
	return nil
}

func (c *Certificates) manager(client pki.NodeClient) (certificate.Manager, error) {
	store, err := storeOf(c.Member, client)
	if err != nil {
		return nil, err
	}
	kubeconfig := c.Member.Files().NodeKubeconfig
	manager, err := certificate.NewManager(&certificate.Config{
		Name: client.User, SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: clientUsages(),
		Template: &x509.CertificateRequest{Subject: c.Member.Subject(client)}, CertificateStore: store,
		// Create a new client for each request, because it then uses the node's current
		// certificate.
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) { return pki.NewClient(kubeconfig) },
	})
	if err != nil {
		return nil, fmt.Errorf("set up renewal of %s: %w", client.User, err)
	}
	return manager, nil
}
