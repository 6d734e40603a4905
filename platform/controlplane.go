package platform

import (
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apigroup/apps"
	"github.com/slipway-platform/slipway/apigroup/build"
	"github.com/slipway-platform/slipway/apigroup/image"
	networkapi "github.com/slipway-platform/slipway/apigroup/network"
	"github.com/slipway-platform/slipway/apigroup/quota"
	"github.com/slipway-platform/slipway/apigroup/route"
	"github.com/slipway-platform/slipway/apigroup/template"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/bootstrap"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/kube"
	volumeplugin "github.com/slipway-platform/slipway/kube/flexvolume"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki"
)

// The parts of the control plane, made from the configuration.

func (h *host) etcd() (Component, error) {
	return &kube.Etcd{
		Dir:           h.Master.EtcdDirectory(),
		Socket:        h.etcdSocket(),
		ClientAddress: h.Master.EtcdAddress(),
		PeerAddress:   h.Master.EtcdPeerAddress(),
		CertFile:      h.identity.EtcdServer.Cert,
		KeyFile:       h.identity.EtcdServer.Key,
		CAFile:        h.identity.EtcdCA.Cert,
	}, nil
}

func (h *host) apiServer() (Component, error) {
	bind, port := h.Master.APIAddress()
	nodePorts := h.Master.NodePorts()
	features, err := h.features()
	if err != nil {
		return nil, err
	}
	audit, err := h.audit()
	if err != nil {
		return nil, err
	}
	server := &kube.APIServer{
		BindAddress:        net.ParseIP(bind),
		AdvertiseAddress:   h.address.AsSlice(),
		Port:               port,
		CertFile:           h.identity.APIServer.Cert,
		KeyFile:            h.identity.APIServer.Key,
		ClientCAFile:       h.identity.CA.Cert,
		EtcdSocket:         h.etcdSocket(),
		KubeletCertFile:    h.identity.KubeletClient.Cert,
		KubeletKeyFile:     h.identity.KubeletClient.Key,
		KubeletCAFile:      h.identity.CA.Cert,
		FrontProxyCAFile:   h.identity.FrontProxyCA.Cert,
		FrontProxyCertFile: h.identity.FrontProxy.Cert,
		FrontProxyKeyFile:  h.identity.FrontProxy.Key,

		ServiceCIDR: h.Master.ServiceNetwork().String(),
		NodePorts:   &nodePorts,
		Domain:      h.Node.DNSDomain,
		Audit:       audit,
		Arguments:   arguments.Map(h.Master.KubernetesMasterConfig.APIServerArguments),
		Features:    features,

		CORSOrigins:   h.Master.CORSOrigins(),
		MinTLSVersion: h.Master.ServingInfo.MinTLSVersion,
		CipherSuites:  h.Master.ServingInfo.CipherSuites,

		LimitSecretReferences: h.Master.ServiceAccountConfig.LimitSecretReferences,
	}
	for _, named := range h.Master.ServingInfo.NamedCertificates {
		server.NamedCertificates = append(server.NamedCertificates, kube.NamedCertificate{Names: named.Names, CertFile: named.CertFile, KeyFile: named.KeyFile})
	}
	server.ServiceAccountKeyFile, server.ServiceAccountKeyFiles = h.accountKeys()
	if err := h.encrypt(server); err != nil {
		return nil, err
	}
	if err := h.admission(server); err != nil {
		return nil, err
	}
	return server, nil
}

// features are what we add to the API server, in the order in which discovery announces their groups.
func (h *host) features() ([]apiserver.Feature, error) {
	identity, err := h.identityFeatures()
	if err != nil {
		return nil, err
	}
	rights, err := h.rights()
	if err != nil {
		return nil, err
	}
	rules := kube.Rules{}
	return slices.Concat(identity, rights, h.checks(), []apiserver.Feature{
		apps.Feature(rules),
		build.Feature(rules),
		image.Feature(h.imageOptions()),
		route.Feature(h.Master.RoutingConfig.Subdomain),
		template.Feature(h.Master.TemplateServiceBrokerConfig.TemplateNamespaces),
		quota.Feature(rules),
		networkapi.Feature(),
		versionFeature(),
	}), nil
}

func (h *host) controllers() (Component, error) {
	network, hostBits := h.Master.ClusterNetwork()
	signing, _ := h.accountKeys()
	recycler, err := h.recyclerTemplate()
	if err != nil {
		return nil, err
	}
	return &kube.Controllers{
		Kubeconfig:            h.identity.ControllerManagerKubeconfig,
		ClusterCIDR:           network.String(),
		NodeMaskSize:          network.Addr().BitLen() - hostBits,
		ServiceCIDR:           h.Master.ServiceNetwork().String(),
		ServiceAccountKeyFile: signing,
		RootCAFile:            h.identity.CA.Cert,
		SigningCertFile:       h.identity.CA.Cert,
		SigningKeyFile:        h.identity.CA.Key,
		VolumePluginDir:       h.Node.VolumePluginDir(),
		RecyclerTemplate:      recycler,
		Arguments:             arguments.Map(h.Master.KubernetesMasterConfig.ControllerArguments),
	}, nil
}

// accountKeys are the files of the key that signs the tokens of service accounts, and of those that verify them: several while keys are exchanged.
func (h *host) accountKeys() (signing string, verifying []string) {
	configured := h.Master.ServiceAccountConfig
	switch {
	case configured.PrivateKeyFile == "":
		return h.identity.ServiceAccountKey, append([]string{h.identity.ServiceAccountPublicKey}, configured.PublicKeyFiles...)
	case len(configured.PublicKeyFiles) == 0:
		return configured.PrivateKeyFile, []string{configured.PrivateKeyFile} // it has the public key too
	}
	return configured.PrivateKeyFile, configured.PublicKeyFiles
}

func (h *host) scheduler() (Component, error) {
	return &kube.Scheduler{
		Kubeconfig: h.identity.SchedulerKubeconfig,
		Arguments:  arguments.Map(h.Master.KubernetesMasterConfig.SchedulerArguments),
	}, nil
}

// flexVolumes is the registry of FlexVolume drivers; both processes have one, with its metrics.
func (h *host) flexVolumes() (Component, error) {
	metrics, err := volumeplugin.NewMetrics()
	if err != nil {
		return nil, err
	}
	drivers := h.drivers()
	drivers.Observer = metrics
	return drivers, nil
}

func (h *host) attachDetach() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &kube.AttachDetach{Client: client, Prober: volumeplugin.NewProber(h.drivers(), volumeplugin.Options{Attachments: h.attachments()})}, nil
}

func (h *host) flexVolumeRecovery() (Component, error) {
	config, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &volumeplugin.DetachRecovery{Client: client, Registry: h.drivers(), Attachments: h.attachments()}, nil
}

func (h *host) expander() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &kube.Expander{
		Client: client, Prober: volumeplugin.NewProber(h.drivers(), volumeplugin.Options{}), KubeletRoot: h.Node.VolumeDirectory,
	}, nil
}

func (h *host) bootstrap() (Component, error) {
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	return &bootstrap.Objects{Client: client, Without: h.withoutManifests()}, nil
}

// certificates renews what is about to expire, while everything runs.
func (h *host) certificates() (Component, error) {
	return &pki.Renewer{
		Spec:     func() (pki.Spec, error) { return h.pkiSpec(), nil },
		Interval: renewalInterval(h.Master.Slipway.CertificateLifetime.Duration),
	}, nil
}

// renewalInterval is how often certificates of a lifetime are looked at: often enough that the third of it
// which is left at renewal has many chances, and at least hourly.
func renewalInterval(lifetime time.Duration) time.Duration {
	return min(lifetime/360, time.Hour)
}

// pkiSpec says which certificates this host needs.
func (h *host) pkiSpec() pki.Spec {
	_, port := h.Master.APIAddress()
	url := func(host string) string { return "https://" + net.JoinHostPort(host, strconv.Itoa(port)) }
	return pki.Spec{
		Dir:             h.path("pki"),
		AdminKubeconfig: h.adminKubeconfig(),
		APIURL:          url(h.address.String()),
		LoopbackURL:     url("127.0.0.1"),
		NodeName:        h.Node.NodeName,
		APIHosts:        append(h.names(), h.Master.APIServiceIP().String()),
		NodeHosts:       h.names(),
		RegistryHosts:   h.registryNames(),
		ClusterDomain:   h.Node.DNSDomain,
		LeafLifetime:    h.Master.Slipway.CertificateLifetime.Duration,
		CALifetime:      h.Master.Slipway.CALifetime.Duration,
	}
}

// names are what this machine may be called by: its name and every address.
func (h *host) names() []string {
	names := []string{h.Node.NodeName}
	for _, address := range hostaddr.HostAddresses(h.ownDevices()...) {
		names = append(names, address.String())
	}
	return names
}
