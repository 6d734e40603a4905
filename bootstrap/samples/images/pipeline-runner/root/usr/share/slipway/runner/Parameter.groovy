package pipeline

/** A parameter of a pipeline or an input. */
class Parameter {
    final String name, description
    final Object defaultValue
    final List choices

    Parameter(Map options, Object defaultValue, List choices = null) {
        name = options.name
        description = options.description ?: ''
        this.defaultValue = defaultValue
        this.choices = choices
    }

    /** Sets a run's parameter to the build's variable with the same name, or to its default. */
    void apply(Run run) {
        def value = valueOf(run.env[name])
        run.params[name] = value
        run.env[name] = value.toString()
    }

    /** Returns the parameter's value for a given value, or the default if no value is given. */
    Object valueOf(Object given) {
        if (given == null) return defaultValue
        if (choices && !choices*.toString().contains(given.toString())) throw new Failure("the parameter $name has the value \"$given\", want one of $choices")
        defaultValue instanceof Boolean ? given.toString().toBoolean() : given.toString()
    }

    /** Returns the definition in the format of Jenkins' REST API. */
    Map json() {
        String type = choices ? 'Choice' : defaultValue instanceof Boolean ? 'Boolean' : 'String'
        [type: type + 'ParameterDefinition', name: name, description: description, definition: [defaultVal: defaultValue] + (choices ? [choices: choices] : [:])]
    }
}
