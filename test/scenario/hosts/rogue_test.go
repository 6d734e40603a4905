package hosts

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"

	"github.com/slipway-platform/slipway/test/kit"
)

// rogue is a host whose administrator attacks the cluster that the host has joined. The attacker
// uses only the host's keys, and runs no processes on the host.
type rogue struct {
	*kit.Cluster
	t       *testing.T
	host    *kit.Host // the attacked host, which is the second host
	name    string
	address string
	token   string
	// bootstrap has the permissions of the join token, and node has the permissions of the rogue
	// host's node.
	bootstrap *kit.User
	node      *kit.User
}

// joinRequest is the request that a joining host sends.
type joinRequest struct {
	Token     string `json:"token"`
	Role      string `json:"role"`
	NodeName  string `json:"nodeName"`
	Address   string `json:"address"`
	DNSDomain string `json:"dnsDomain"`
}

// newRogue returns a rogue host with an unused token. The host has a unique name, because a joining
// host's name is reserved for a while.
func newRogue(t *testing.T) *rogue {
	t.Helper()
	c, host := kit.SharedHost(t)
	token := c.Token()
	name := "rogue-" + strings.Split(token, ".")[2]
	octets := c.Address.As4()
	octets[3] = 200
	r := &rogue{Cluster: c, t: t, host: host, name: name, address: fmt.Sprintf("%d.%d.%d.%d", octets[0], octets[1], octets[2], octets[3]), token: token}
	config := rest.AnonymousClientConfig(c.Config)
	config.Dial, config.BearerToken = c.Dial, r.token
	r.bootstrap = kit.NewUser(t, config, rest.ImpersonationConfig{})
	r.bootstrap.Name = "token"
	t.Cleanup(func() { c.OC("delete", "node", name, "--ignore-not-found") })
	return r
}

// ask sends a join request and returns the response.
func (r *rogue) ask(request joinRequest) (code int, text string) {
	r.t.Helper()
	if request.Token == "" {
		request.Token = r.token
	}
	if request.Role == "" {
		request.Role = "node"
	}
	if request.DNSDomain == "" {
		request.DNSDomain = "cluster.local"
	}
	body, err := json.Marshal(request)
	if err != nil {
		r.t.Fatal(err)
	}
	transport := &http.Transport{DialContext: r.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	response, err := (&http.Client{Transport: transport}).Post(r.Config.Host+"/slipway/join", "application/json", strings.NewReader(string(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(data)
}

// request creates a CertificateSigningRequest as a user. It returns the object's name and the
// private key. It fails the test if the API server rejects the object.
func (r *rogue) request(user *kit.User, signer string, subject pkix.Name, hosts []string) (name string, key []byte) {
	r.t.Helper()
	name, key, err := r.tryRequest(user, signer, subject, hosts)
	if err != nil {
		r.t.Fatal(err)
	}
	return name, key
}

func (r *rogue) tryRequest(user *kit.User, signer string, subject pkix.Name, hosts []string) (name string, key []byte, err error) {
	r.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject, DNSNames: hosts}, private)
	if err != nil {
		r.t.Fatal(err)
	}
	usage := certificatesv1.UsageClientAuth
	if signer == certificatesv1.KubeletServingSignerName {
		usage = certificatesv1.UsageServerAuth
	}
	body, err := json.Marshal(certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "rogue-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	response, err := user.Try("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", string(body))
	if err != nil {
		return "", nil, err
	}
	var created certificatesv1.CertificateSigningRequest
	if err := json.Unmarshal([]byte(response), &created); err != nil {
		r.t.Fatal(err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		r.t.Fatal(err)
	}
	return created.Name, key, nil
}

func nodeSubject(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

// join joins the cluster, and obtains the node's certificate.
func (r *rogue) join() {
	r.t.Helper()
	if code, text := r.ask(joinRequest{NodeName: r.name, Address: r.address}); code != http.StatusOK {
		r.t.Fatalf("join: %d %s", code, text)
	}
	name, key := r.request(r.bootstrap, certificatesv1.KubeAPIServerClientKubeletSignerName, nodeSubject(r.name), nil)
	var cert []byte
	r.WaitFor("certificate of the node", func(ctx context.Context) error {
		request, err := r.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(request.Status.Certificate) == 0 {
			err = fmt.Errorf("the status is %+v", request.Status)
		}
		if err == nil {
			cert = request.Status.Certificate
		}
		return err
	})
	r.node = r.user(cert, key)
}

// user returns a user that authenticates with the given client certificate.
func (r *rogue) user(cert, key []byte) *kit.User {
	config := rest.AnonymousClientConfig(r.Config)
	config.Dial, config.CertData, config.KeyData = r.Dial, cert, key
	user := kit.NewUser(r.t, config, rest.ImpersonationConfig{})
	user.Name = r.name
	return user
}

// path returns the Node's URL path.
func (r *rogue) path() string { return "/api/v1/nodes/" + r.name }

// register creates the Node object.
func (r *rogue) register(spec string) (string, error) {
	return r.node.Try("POST", "/api/v1/nodes", fmt.Sprintf("{apiVersion: v1, kind: Node, metadata: {name: %s}, spec: %s}", r.name, spec))
}

func TestTokenIsValidForCertificateOfOneNode(t *testing.T) {
	r := newRogue(t)
	waitNodeReady(r.Cluster, second)
	forged := r.token[:len(r.token)-4] + "0000"
	for name, request := range map[string]joinRequest{
		"name of the master":            {NodeName: r.NodeName()},
		"name of the API server":        {NodeName: "kubernetes.default"},
		"name of the registry":          {NodeName: "docker-registry.default.svc"},
		"name of another node":          {NodeName: second},
		"no name":                       {NodeName: "../secrets"},
		"address of another node":       {Address: r.host.Address.String()},
		"address of the master":         {Address: r.Address.String()},
		"other spelling of the address": {Address: "::ffff:" + r.Address.String()},
		"address of loopback":           {Address: "127.0.0.2"},
		"address of a metadata service": {Address: "169.254.169.254"},
		"address of a pod":              {Address: "10.128.0.9"},
		"address of a service":          {Address: "172.30.0.1"},
		"another role":                  {Role: "master"},
		"forged token":                  {Token: forged},
	} {
		request.NodeName, request.Address = cmp.Or(request.NodeName, r.name), cmp.Or(request.Address, r.address)
		if code, text := r.ask(request); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	for _, path := range []string{"/api/v1/secrets", "/api/v1/nodes", "/api/v1/pods", kit.CorePath("kube-system", "configmaps/slipway-hosts")} {
		r.bootstrap.MayNot("GET", path, "", "cannot")
	}
	r.join()
	var pending []string
	// None of these requests may be approved, because the host has already used the token.
	for _, node := range []string{r.name, second, r.NodeName()} {
		name, _ := r.request(r.bootstrap, certificatesv1.KubeAPIServerClientKubeletSignerName, nodeSubject(node), nil)
		pending = append(pending, name)
	}
	component := func(user, unit string) pkix.Name {
		return pkix.Name{CommonName: user, OrganizationalUnit: []string{unit}}
	}
	for _, subject := range []pkix.Name{component("system:kube-proxy", "system:node:"+second), component("system:kube-proxy", ""), component("system:openshift-master", "system:node:"+r.name)} {
		name, _ := r.request(r.node, certificatesv1.KubeAPIServerClientSignerName, subject, nil)
		pending = append(pending, name)
	}
	for _, host := range []string{second, "kubernetes", "registry.example.com"} {
		name, _ := r.request(r.node, certificatesv1.KubeletServingSignerName, nodeSubject(r.name), []string{host})
		pending = append(pending, name)
	}
	// When this request has been handled, the earlier requests have been handled, too, because the
	// controllers handle requests in order with few workers.
	own, _ := r.request(r.node, certificatesv1.KubeAPIServerClientSignerName, component("system:kube-proxy", "system:node:"+r.name), nil)
	r.WaitFor("certificate of the node's own component", func(ctx context.Context) error {
		request, err := r.Client.CertificatesV1().CertificateSigningRequests().Get(ctx, own, metav1.GetOptions{})
		if err == nil && len(request.Status.Certificate) == 0 {
			err = fmt.Errorf("the status is %+v", request.Status)
		}
		return err
	})
	for _, name := range pending {
		request, err := r.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(request.Status.Conditions)+len(request.Status.Certificate) > 0 {
			t.Errorf("%s of %s: %v, %+v", request.Spec.SignerName, request.Spec.Username, err, request.Status)
		}
	}
}

func TestNodeCannotTakeResourcesOfOtherNodes(t *testing.T) {
	r := newRogue(t)
	waitNodeReady(r.Cluster, second)
	r.join()
	subnet := netip.MustParsePrefix(strings.TrimSpace(r.OC("get", "node", second, "-o", "jsonpath={.spec.podCIDR}")))
	part := netip.PrefixFrom(subnet.Addr(), subnet.Bits()+1).String()
	if response, err := r.register(fmt.Sprintf("{podCIDR: %s, podCIDRs: [%s]}", part, part)); !apierrors.IsForbidden(err) {
		t.Errorf("a node with a part of another node's subnet: %v %s", err, response)
	}
	if response, err := r.register("{}"); err != nil {
		t.Fatalf("%v %s", err, response)
	}
	// The error depends on whether the node already has a subnet.
	response, err := r.node.Try("PATCH", r.path(), fmt.Sprintf(`{"spec":{"podCIDR":%q,"podCIDRs":[%q]}}`, part, part))
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("a change to a part of another node's subnet: %v %s", err, response)
	}
	for body, reason := range map[string]string{
		`{"metadata":{"finalizers":["example.com/forever"]}}`:                                              "metadata.finalizers",
		`{"spec":{"unschedulable":true}}`:                                                                  "spec.unschedulable",
		`{"metadata":{"annotations":{"slipway.openshift.io/node-group":"node-config-infra"}}}`:             "a node cannot change slipway.openshift.io/node-group",
		`{"metadata":{"annotations":{"slipway.openshift.io/node-group-labels":"kubernetes.io/hostname"}}}`: "a node cannot change slipway.openshift.io/node-group-labels",
		`{"metadata":{"labels":{"node-role.kubernetes.io/infra":""}}}`:                                     "is not allowed to modify labels",
	} {
		r.node.MayNot("PATCH", r.path(), body, reason)
	}
	for _, address := range []string{r.Address.String(), r.host.Address.String(), "127.0.0.1", "169.254.169.254", subnet.Addr().Next().String(), "172.30.0.1", "kubernetes"} {
		r.node.MayNot("PATCH", r.path()+"/status", fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, address), address)
	}
	r.node.May("PATCH", r.path()+"/status", fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, r.address))
	uid := strings.TrimSpace(r.OC("get", "node", r.name, "-o", "jsonpath={.metadata.uid}"))
	trap := func(namespace string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: trap, namespace: %s, labels: {app: web}, annotations: {kubernetes.io/config.mirror: a},
			ownerReferences: [{apiVersion: v1, kind: Node, name: %s, uid: %s, controller: true}]}, spec: {nodeName: %[2]s, containers: [{name: main, image: x}]}}`, namespace, r.name, uid)
	}
	r.node.MayNot("POST", kit.CorePath(r.Namespace, "pods"), trap(r.Namespace), "metadata.namespace")
	r.node.May("POST", kit.CorePath("kube-system", "pods"), trap("kube-system"))
	for _, address := range []string{subnet.Addr().Next().String(), r.Address.String(), "127.0.0.1"} {
		r.node.MayNot("PATCH", kit.CorePath("kube-system", "pods/trap/status"), fmt.Sprintf(`{"status":{"podIP":%q,"podIPs":[{"ip":%q}]}}`, address, address), "status.podIPs")
	}
	r.node.May("DELETE", kit.CorePath("kube-system", "pods/trap"), `{apiVersion: v1, kind: DeleteOptions, gracePeriodSeconds: 0}`)
	for _, path := range []string{"/api/v1/secrets", "/api/v1/pods", kit.CorePath("kube-system", "configmaps/slipway-hosts"), "/api/v1/nodes/" + second + "/proxy/pods"} {
		r.node.MayNot("GET", path, "", "forbidden")
	}
	r.node.MayNot("PATCH", "/api/v1/nodes/"+second, `{"metadata":{"annotations":{"slipway.openshift.io/leave":"true"}}}`, "is not allowed to modify node")
	for path, change := range map[string]string{
		"/apis/network.openshift.io/v1/netnamespaces/kube-system":                            `{"netid":0}`,
		"/apis/network.openshift.io/v1/hostsubnets/" + second:                                `{"hostIP":"` + r.address + `"}`,
		"/apis/network.openshift.io/v1/clusternetworks/default":                              `{"pluginName":""}`,
		kit.CorePath("kube-system", "configmaps/slipway-hosts"):                              `{"data":null}`,
		kit.CorePath("kube-system", "configmaps/slipway-masters"):                            `{"data":null}`,
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager": `{"spec":{"holderIdentity":"` + r.name + `"}}`,
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + second:           `{"spec":{"leaseDurationSeconds":1}}`,
		"/apis/storage.k8s.io/v1/csinodes/" + second:                                         `{"spec":{"drivers":[]}}`,
	} {
		r.node.MayNot("PATCH", path, change, "forbidden")
	}
	r.node.MayNot("POST", kit.CorePath("kube-system", "serviceaccounts/default/token"), "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {}}", "no relationship")
}

// TestRemovedNodeGetsNoNewCertificate removes a node while its host continuously requests
// certificates.
func TestRemovedNodeGetsNoNewCertificate(t *testing.T) {
	r := newRogue(t)
	r.join()
	if response, err := r.register("{}"); err != nil {
		t.Fatalf("%v %s", err, response)
	}
	// Wait for the finalizer, because a Node without the finalizer would be removed immediately.
	r.WaitFor("finalizer of the node", func(ctx context.Context) error {
		node, err := r.Client.CoreV1().Nodes().Get(ctx, r.name, metav1.GetOptions{})
		if err == nil && len(node.Finalizers) == 0 {
			err = fmt.Errorf("the node has no finalizer")
		}
		return err
	})
	keys := map[string][]byte{}
	request := func() (name string, err error) {
		name, key, err := r.tryRequest(r.node, certificatesv1.KubeAPIServerClientKubeletSignerName, nodeSubject(r.name), nil)
		if err == nil {
			keys[name] = key
		}
		return name, err
	}
	// Send one request first, because the node might be removed before the loop sends its first
	// request.
	if _, err := request(); err != nil {
		t.Fatal(err)
	}
	r.OC("delete", "node", r.name, "--wait=false")
	r.WaitFor("rejection of the host", func(context.Context) error {
		name, err := request()
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		_, _ = r.register("{}") // try to recreate the Node, which must be rejected or deleted
		return fmt.Errorf("the host got request %q, %w", name, err)
	})
	issued := 0
	r.WaitFor("the end of the node and its requests", func(ctx context.Context) error {
		list, err := r.Client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		issued = 0
		for _, request := range list.Items {
			switch key, own := keys[request.Name]; {
			case !own:
			case len(request.Status.Certificate) == 0:
				return fmt.Errorf("request %s has no certificate", request.Name)
			default:
				issued++
				if _, err := r.user(request.Status.Certificate, key).Try("GET", "/api/v1/services", ""); !apierrors.IsUnauthorized(err) {
					return fmt.Errorf("certificate of %s: %w", request.CreationTimestamp, err)
				}
			}
		}
		_, err = r.Client.CoreV1().Nodes().Get(ctx, r.name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the node exists, or an error: %v", err)
		}
		return nil
	})
	t.Logf("%d requests, %d certificates", len(keys), issued)
}
