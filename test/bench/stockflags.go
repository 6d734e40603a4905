package main

import (
	"github.com/slipway-platform/slipway/test/bench/host"
)

// arguments returns the stock programs' command lines. They differ from kubeadm's command lines in
// two ways. Programs do not wait for leases, because a single control plane does not share them.
// etcd listens only on loopback.
func (s *stock) arguments() map[string][]string {
	f := s.credentials.Files
	const client, peer = "https://127.0.0.1:2379", "https://127.0.0.1:2380"
	return map[string][]string{
		"etcd": {
			"--name=" + s.nodeName, "--data-dir=" + s.host.Path("etcd"),
			"--advertise-client-urls=" + client, "--listen-client-urls=" + client,
			"--initial-advertise-peer-urls=" + peer, "--listen-peer-urls=" + peer, "--initial-cluster=" + s.nodeName + "=" + peer,
			"--listen-metrics-urls=http://127.0.0.1:2381",
			"--cert-file=" + f.EtcdServer.Cert, "--key-file=" + f.EtcdServer.Key,
			"--trusted-ca-file=" + f.EtcdCA.Cert, "--client-cert-auth=true",
			"--peer-cert-file=" + f.EtcdServer.Cert, "--peer-key-file=" + f.EtcdServer.Key,
			"--peer-trusted-ca-file=" + f.EtcdCA.Cert, "--peer-client-cert-auth=true",
			"--snapshot-count=10000", "--feature-gates=InitialCorruptCheck=true", "--watch-progress-notify-interval=5s",
		},
		"kube-apiserver": {
			"--advertise-address=" + host.Address, "--secure-port=6443", "--allow-privileged=true",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true",
			"--client-ca-file=" + f.CA.Cert,
			"--tls-cert-file=" + f.APIServer.Cert, "--tls-private-key-file=" + f.APIServer.Key,
			"--etcd-servers=" + client, "--etcd-cafile=" + f.EtcdCA.Cert,
			"--etcd-certfile=" + f.EtcdClient.Cert, "--etcd-keyfile=" + f.EtcdClient.Key,
			"--kubelet-client-certificate=" + f.KubeletClient.Cert, "--kubelet-client-key=" + f.KubeletClient.Key,
			"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
			"--proxy-client-cert-file=" + f.FrontProxy.Cert, "--proxy-client-key-file=" + f.FrontProxy.Key,
			"--requestheader-client-ca-file=" + f.FrontProxyCA.Cert, "--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + f.ServiceAccountPublicKey, "--service-account-signing-key-file=" + f.ServiceAccountKey,
			"--service-cluster-ip-range=" + serviceCIDR,
		},
		"kube-controller-manager": {
			"--kubeconfig=" + f.ControllerManagerKubeconfig, "--authentication-kubeconfig=" + f.ControllerManagerKubeconfig,
			"--authorization-kubeconfig=" + f.ControllerManagerKubeconfig, "--bind-address=127.0.0.1",
			"--allocate-node-cidrs=true", "--cluster-cidr=" + podsCIDR, "--node-cidr-mask-size=23",
			"--service-cluster-ip-range=" + serviceCIDR, "--cluster-name=kubernetes",
			"--client-ca-file=" + f.CA.Cert, "--requestheader-client-ca-file=" + f.FrontProxyCA.Cert, "--root-ca-file=" + f.CA.Cert,
			"--cluster-signing-cert-file=" + f.CA.Cert, "--cluster-signing-key-file=" + f.CA.Key,
			"--service-account-private-key-file=" + f.ServiceAccountKey, "--use-service-account-credentials=true",
			"--controllers=*,bootstrapsigner,tokencleaner", "--leader-elect=false",
			// Without this flag, the controller manager would use the default directory, which is
			// shared.
			"--flex-volume-plugin-dir=" + s.host.Path("drivers"),
		},
		"kube-scheduler": {
			"--kubeconfig=" + f.SchedulerKubeconfig, "--authentication-kubeconfig=" + f.SchedulerKubeconfig,
			"--authorization-kubeconfig=" + f.SchedulerKubeconfig, "--bind-address=127.0.0.1", "--leader-elect=false",
		},
		"kubelet": {
			"--config=" + s.host.Path("kubelet.yaml"), "--kubeconfig=" + f.NodeKubeconfig, "--node-ip=" + host.Address,
			"--hostname-override=" + s.nodeName, "--root-dir=" + s.host.Path("kubelet"), "--cert-dir=" + s.host.Path("kubelet-pki"),
			"--volume-plugin-dir=" + s.host.Path("drivers"),
		},
		"kube-proxy": {"--config=" + s.host.Path("proxy.yaml")},
		"containerd": {"--config", s.host.Path("containerd.toml")},
	}
}
