// Package bigiptest simulates an F5 BIG-IP appliance for tests: the part of its iControl REST API
// that routers use, with the checks of the appliance, SSH for uploads, and virtual servers that
// forward requests as the configuration defines.
//
// Source: F5's iControl REST User Guide and TMSH reference. It was never compared with a real
// appliance.
package bigiptest
