package hosts

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificatelisters "k8s.io/client-go/listers/certificates/v1"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
)

// approver approves the certificate signing requests of joined hosts. It leaves all other requests
// to administrators and to the Kubernetes approver.
type approver struct {
	client   kubernetes.Interface
	requests certificatelisters.CertificateSigningRequestLister
	tokens   Tokens
	register register
	// dualStack allows a kubelet certificate to contain the IPv6 addresses of its Node, which the
	// admission plugin in this package has checked.
	dualStack bool
}

// reconcile approves a certificate signing request if it comes from a joined host.
func (a *approver) reconcile(ctx context.Context, key controller.Key) error {
	request, err := a.requests.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(request.Status.Certificate) > 0 || len(request.Status.Conditions) > 0 {
		return nil
	}
	certificate := parse(request.Spec.Request)
	if certificate == nil {
		return nil
	}
	reason, err := a.reason(ctx, request, certificate)
	if err != nil || reason == "" {
		return err
	}
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "SlipwayHost", Message: reason,
	})
	_, err = a.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("approve signing request %q: %w", request.Name, err)
	}
	slog.Info("approved signing request of a host", "request", request.Name, "user", request.Spec.Username)
	return nil
}

func parse(data []byte) *x509.CertificateRequest {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || certificate.CheckSignature() != nil {
		return nil
	}
	return certificate
}

// reason returns the reason to approve a request, or "" if the request is not approved.
func (a *approver) reason(ctx context.Context, request *certificatesv1.CertificateSigningRequest, certificate *x509.CertificateRequest) (string, error) {
	if id, ok := strings.CutPrefix(request.Spec.Username, join.UserPrefix); ok {
		return a.firstCertificate(ctx, id, request, certificate)
	}
	node, ok := strings.CutPrefix(request.Spec.Username, userOfNode)
	if !ok || !slices.Contains(request.Spec.Groups, groupOfNodes) {
		return "", nil
	}
	hosts, err := a.register.read(ctx)
	if err != nil {
		return "", err
	}
	host, joined := hosts[node]
	if !joined || host.removed() {
		return "", nil
	}
	switch request.Spec.SignerName {
	case certificatesv1.KubeletServingSignerName:
		addresses, err := a.addresses(ctx, node, host.Address)
		return servingCertificate(node, addresses, certificate), err
	case certificatesv1.KubeAPIServerClientSignerName:
		if isComponent(node, host, request, certificate) {
			return "the certificate is for a component of the requesting node", nil
		}
	}
	return "", nil
}

// firstCertificate approves, once, the certificate request of the node that claimed a token.
func (a *approver) firstCertificate(ctx context.Context, id string, request *certificatesv1.CertificateSigningRequest, certificate *x509.CertificateRequest) (string, error) {
	node, ok := strings.CutPrefix(certificate.Subject.CommonName, userOfNode)
	if !ok || request.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		!slices.Contains(request.Spec.Groups, join.Group) || hasNames(certificate) {
		return "", nil
	}
	isRenewal, err := a.tokens.isForNode(ctx, id, node)
	if err != nil {
		return "", err
	}
	if !isRenewal {
		// The node might exist because the host has joined with another token.
		if _, err := a.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err == nil || !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	hosts, err := a.register.read(ctx)
	if err != nil {
		return "", err
	}
	if isRenewal && hosts[node].removed() {
		return "", nil // the host was removed after it claimed the token
	}
	approved, err := a.tokens.approve(ctx, id, node, request.Name, hosts[node].removed())
	if err != nil || !approved {
		return "", err
	}
	// isLast reports whether the name was last claimed with this token.
	isLast := false
	err = a.register.change(ctx, node, func(h *Host) {
		if isLast = h.Token == id; isLast {
			h.Joined, h.Pending = now(), false
		}
	})
	if err != nil || !isLast {
		return "", err
	}
	return "the node joins with the token " + id, nil
}

// addresses returns the host's address at the time of the join. If pods have IPv6 addresses, it
// also returns the Node's IPv6 addresses.
func (a *approver) addresses(ctx context.Context, node, joined string) (addresses []netip.Addr, err error) {
	address, err := netip.ParseAddr(joined)
	if err != nil {
		return nil, nil //nolint:nilerr // without a valid address, no certificate may contain one
	}
	addresses = append(addresses, address)
	if !a.dualStack {
		return addresses, nil
	}
	object, err := a.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read addresses of node %q: %w", node, err)
	}
	for _, status := range object.Status.Addresses {
		if address, err := netip.ParseAddr(status.Address); err == nil && status.Type == corev1.NodeInternalIP && address.Is6() && address.Zone() == "" {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}

// servingCertificate approves the kubelet's serving certificate if its names and addresses match
// the host's. NodeRestriction has already checked the common name.
func servingCertificate(node string, addresses []netip.Addr, certificate *x509.CertificateRequest) (reason string) {
	if len(certificate.URIs) > 0 || len(certificate.EmailAddresses) > 0 {
		return ""
	}
	if slices.ContainsFunc(certificate.DNSNames, func(name string) bool { return name != node }) {
		return ""
	}
	foreign := func(ip net.IP) bool {
		address, _ := netip.AddrFromSlice(ip)
		return !slices.Contains(addresses, address.Unmap())
	}
	if slices.ContainsFunc(certificate.IPAddresses, foreign) {
		return ""
	}
	return "the certificate is for the name and the addresses of the node"
}

// isComponent reports whether a certificate request is for a component on a node. The request's
// subject contains the component's user as the common name and the node as the organizational unit.
// Because the subject contains the node, the API server can reject the certificate after the host
// has been removed.
func isComponent(node string, host Host, request *certificatesv1.CertificateSigningRequest, certificate *x509.CertificateRequest) bool {
	subject := certificate.Subject
	if hasNames(certificate) || !slices.Equal(subject.OrganizationalUnit, []string{userOfNode + node}) {
		return false
	}
	if !slices.Contains(request.Spec.Usages, certificatesv1.UsageClientAuth) {
		return false
	}
	for _, client := range (pki.Member{Router: !host.NoRouter}).Clients() {
		if client.User == subject.CommonName && slices.Equal(client.Groups, subject.Organization) {
			return true
		}
	}
	return false
}

// hasNames reports whether a certificate request contains names that only servers need.
func hasNames(c *x509.CertificateRequest) bool {
	return len(c.DNSNames)+len(c.IPAddresses)+len(c.URIs)+len(c.EmailAddresses) > 0
}
