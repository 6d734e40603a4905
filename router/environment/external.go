package environment

// external returns the variables for a router of type f5-router, which configures an F5 BIG-IP
// appliance. Other routers do not use these variables. Package router/f5 validates them in detail.
func external() []Variable {
	return []Variable{
		{"ROUTER_EXTERNAL_HOST_HOSTNAME", "", "f5-router: host of the appliance's management interface, with a port if it is not 443", text()},
		{"ROUTER_EXTERNAL_HOST_USERNAME", "", "f5-router: user of the appliance, with the role Administrator", text()},
		{"ROUTER_EXTERNAL_HOST_PASSWORD", "", "f5-router: password of the user", text()},
		{"ROUTER_EXTERNAL_HOST_HTTP_VSERVER", "ose-vserver", "f5-router: virtual server for HTTP", text()},
		{"ROUTER_EXTERNAL_HOST_HTTPS_VSERVER", "https-ose-vserver", "f5-router: virtual server for HTTPS", text()},
		{"ROUTER_EXTERNAL_HOST_PARTITION_PATH", "/Common", "f5-router: path of the partition for the router's objects", text()},
		{"ROUTER_EXTERNAL_HOST_INSECURE", "false", "f5-router: accept any certificate and any SSH key of the appliance", flag()},
		{"ROUTER_EXTERNAL_HOST_PRIVKEY", "", "f5-router: file with the private SSH key that uploads certificates; by default, the REST API uploads them", text()},
		{"ROUTER_EXTERNAL_HOST_KNOWN_HOSTS", "", "f5-router: file with the appliance's SSH key, in the format of ssh-keyscan", text()},
		{"ROUTER_EXTERNAL_HOST_INTERNAL_ADDRESS", "", "f5-router: address of the appliance's internal interface, for native integration", text()},
		{"ROUTER_EXTERNAL_HOST_VXLAN_GW_CIDR", "", "f5-router: address of the appliance in its HostSubnet, with the prefix length of the pod network", text()},
	}
}
