package com.cloudbees.groovy.cps

/**
 * The annotation of methods that Jenkins cannot resume. In Slipway, it has no effect: a restarted
 * runner resumes only steps, and these methods contain no steps.
 */
@interface NonCPS { }
