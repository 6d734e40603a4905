package controlplane

import (
	"context"
	"net"
	"path/filepath"
	"slices"

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/admission/node"
	"github.com/slipway-platform/slipway/admission/ownerlimit"
	"github.com/slipway-platform/slipway/admission/pod"
	"github.com/slipway-platform/slipway/admission/podcost"
	"github.com/slipway-platform/slipway/admission/reach"
	"github.com/slipway-platform/slipway/admission/replicalimit"
	"github.com/slipway-platform/slipway/admission/schedulinglimit"
	"github.com/slipway-platform/slipway/admission/selectorlimit"
	"github.com/slipway-platform/slipway/admission/servicelimit"
	"github.com/slipway-platform/slipway/admission/storageclient"
	"github.com/slipway-platform/slipway/apigroup/apps"
	"github.com/slipway-platform/slipway/apigroup/build"
	"github.com/slipway-platform/slipway/apigroup/build/detect"
	"github.com/slipway-platform/slipway/apigroup/image"
	"github.com/slipway-platform/slipway/apigroup/metrics"
	"github.com/slipway-platform/slipway/apigroup/quota"
	"github.com/slipway-platform/slipway/apigroup/route"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog"
	"github.com/slipway-platform/slipway/apigroup/settings"
	"github.com/slipway-platform/slipway/apigroup/template"
	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/catalog/ansible"
	"github.com/slipway-platform/slipway/config/reload"
	"github.com/slipway-platform/slipway/controller/hosts"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/controller/nodegroup"
	"github.com/slipway-platform/slipway/controller/serviceca"
	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/kube/auditlog"
	"github.com/slipway-platform/slipway/node/scrape"
	"github.com/slipway-platform/slipway/platform/table"
	"github.com/slipway-platform/slipway/supervisor/component"
)

func (h *Host) apiServer() (component.Component, error) {
	bind, port := h.Master.APIAddress()
	nodePorts := h.Master.NodePorts()
	features, adjustments, err := h.features()
	if err != nil {
		return nil, err
	}
	audit, err := kube.NewAudit(h.Master.AuditConfig, h.RunDir())
	if err != nil {
		return nil, err
	}
	server := &kube.APIServer{
		BindAddress:        net.ParseIP(bind),
		AdvertiseAddress:   h.Address.AsSlice(),
		Port:               port,
		BindNetwork:        h.Master.ServingInfo.BindNetwork,
		DNSPort:            h.Master.DNSPort(),
		CertFile:           h.Credentials.APIServer.Cert,
		KeyFile:            h.Credentials.APIServer.Key,
		ClientCAFile:       h.Credentials.CA.Cert,
		EtcdSocket:         h.EtcdSocket(),
		KubeletCertFile:    h.Credentials.KubeletClient.Cert,
		KubeletKeyFile:     h.Credentials.KubeletClient.Key,
		KubeletCAFile:      h.Credentials.CA.Cert,
		FrontProxyCAFile:   h.Credentials.FrontProxyCA.Cert,
		FrontProxyCertFile: h.Credentials.FrontProxy.Cert,
		FrontProxyKeyFile:  h.Credentials.FrontProxy.Key,

		ServiceCIDR: h.Master.NetworkConfig.ServiceNetworkCIDR,
		NodePorts:   &nodePorts,
		Domain:      h.Node.DNSDomain,
		Audit:       audit,
		Recorder:    h.recorder,
		Arguments:   arguments.Map(h.Master.KubernetesMasterConfig.APIServerArguments),
		Features:    features,

		CORSOrigins:   h.Master.CORSOrigins(),
		MinTLSVersion: h.Master.ServingInfo.MinTLSVersion,
		CipherSuites:  h.Master.ServingInfo.CipherSuites,

		AdmissionFile:         filepath.Join(h.RunDir(), "admission.json"),
		LimitSecretReferences: h.Master.ServiceAccountConfig.LimitSecretReferences,
	}
	for _, cert := range h.Master.ServingInfo.NamedCertificates {
		server.NamedCertificates = append(server.NamedCertificates,
			kube.NamedCertificate{Names: cert.Names, CertFile: cert.CertFile, KeyFile: cert.KeyFile})
	}
	server.ServiceAccountKeyFile, server.ServiceAccountKeyFiles = h.serviceAccountKeys()
	if server.Arguments, err = kube.CurrentEncryptionArgument(server.Arguments, h.RunDir()); err != nil {
		return nil, err
	}
	if server.EncryptionConfigFile, err = h.encryptionConfig(); err != nil {
		return nil, err
	}
	admission, err := h.setAdmission(server)
	if err != nil {
		return nil, err
	}
	return table.Adjustable{Component: server, Adjustments: append(adjustments, admission)}, nil
}

// features returns the features that Slipway adds to the API server, in the order in which
// discovery lists their groups. It also returns the adjustments that apply configuration changes.
func (h *Host) features() ([]apiserver.Feature, []reload.Adjustment, error) {
	users, userAdjustments, err := h.userFeatures()
	if err != nil {
		return nil, nil, err
	}
	projects, projectAdjustment, err := h.projectFeatures()
	if err != nil {
		return nil, nil, err
	}
	rules := kube.Rules{}
	features := slices.Concat(users, projects, []apiserver.Feature{
		pod.Feature(),
		pod.AuthorityFeature(serviceca.BundleMap, serviceca.BundleKey),
		node.Feature(),
		reach.Feature(h.networks()),
		servicelimit.Feature(),
		replicalimit.Feature(),
		ownerlimit.Feature(),
		podcost.Feature(kube.ExpandReferences),
		schedulinglimit.Feature(),
		selectorlimit.Feature(),
		storageclient.Feature(storageLimits()),
		apps.Feature(rules),
		build.Feature(rules, h.jenkins()),
		detect.Feature(h.Outbound()),
		image.Feature(h.imageOptions()),
		route.Feature(h.Master.RoutingConfig.Subdomain, h.PKISpec().ServerHosts()),
		servicecatalog.Feature(),
		settings.Feature(rules),
		template.Feature(h.Master.TemplateServiceBrokerConfig.TemplateNamespaces),
		ansible.Feature(h.AnsibleOptions()),
		quota.Feature(rules, h.SeveralMasters()),
		metrics.Feature(h.usage),
		hosts.Feature(h.hostOptions()),
		nodegroup.Feature(checkGroup),
		masters.Feature(h.EtcdMembers(), Groups()),
		auditlog.Feature(h.Master.AuditFile(), h.auditMasters()),
		scrape.Feature(),
		apiserver.VersionFeature(),
	}, h.networkFeatures())
	return features, append(userAdjustments, projectAdjustment), nil
}

// serviceAccountKeys returns the key file that signs service account tokens, and the key files that
// verify them.
func (h *Host) serviceAccountKeys() (signing string, verifying []string) {
	return h.Master.ServiceAccountKeys(h.Credentials.ServiceAccountKey, h.Credentials.ServiceAccountPublicKey)
}

// auditMasters returns the settings for searching the audit logs of the other masters.
func (h *Host) auditMasters() auditlog.Masters {
	return auditlog.Masters{
		Name:   h.Node.NodeName,
		CAFile: h.Credentials.CA.Cert, CertFile: h.Credentials.FrontProxy.Cert, KeyFile: h.Credentials.FrontProxy.Key,
		URLs: func(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
			masters, err := hosts.Masters(ctx, client)
			for name, address := range masters {
				masters[name] = h.APIURL(address)
			}
			return masters, err
		},
	}
}
