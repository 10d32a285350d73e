"""Packaging of heatsoak: distribution name, packages, dependencies and the console script."""

from setuptools import find_packages, setup

setup(
    name="heatsoak",
    version="0.1.0",
    description="Tells which GPU is slow, and why: telemetry, calibrated TensorFlow probes, Prometheus metrics.",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["agent", "agent.*", "exporters", "exporters.*", "workloads", "workloads.*"]),
    py_modules=["heatsoak"],
    package_data={"exporters": ["templates/*", "static/*"], "agent": ["data/*"]},
    install_requires=[
        "nvidia-ml-py>=12.560",  # the maintained package behind `import pynvml`; v2 memory and field ids
        "psutil>=5.9.4",
        "apscheduler>=3.11,<4",  # 4 is another product
        "prometheus-client>=0.20",
        "structlog>=23.1",
        "msgspec>=0.18.6",
        "h11>=0.14",
        "click>=8.1",
        "rich>=13",
        "jinja2>=3.1",
        "pyyaml>=6",
        "bcrypt>=4",
        "tomli>=2; python_version < '3.11'",
    ],
    extras_require={
        "kubernetes": ["h2>=4.1"],
        "report": ["matplotlib>=3.8"],  # pictures of heatsoak compare; typed since 3.8
        "cpu": ["tensorflow-cpu>=2.9"],
        "gpu": ["tensorflow[and-cuda]>=2.15"],
    },
    entry_points={"console_scripts": ["heatsoak=heatsoak:main"]},
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: System :: Monitoring",
    ],
)
