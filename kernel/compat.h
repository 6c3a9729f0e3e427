/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One spelling for interfaces that differ between kernels: the newest one, so
 * that each entry is deleted when the floor has risen past it. Which branch
 * is taken was found by kcompat.sh. Nothing else in the module has an #if
 * about kernels.
 */
#ifndef SPANKER_COMPAT_H
#define SPANKER_COMPAT_H

#include <linux/aer.h>
#include <linux/device.h>
#include <linux/eventfd.h>
#include <linux/pci.h>
#include <net/genetlink.h>

/* 6.8: counts by one. */
static inline void spanker_eventfd_signal(struct eventfd_ctx *context)
{
#ifdef SPANKER_EVENTFD_SIGNAL_1
	eventfd_signal(context);
#else
	eventfd_signal(context, 1);
#endif
}

/* 6.2: class.devnode takes a const device. */
#ifdef SPANKER_DEVNODE_CONST
#define spanker_devnode_device	const struct device
#else
#define spanker_devnode_device	struct device
#endif

/* 6.4: the list of channels is const. */
#ifdef SPANKER_HWMON_INFO_CONST
#define SPANKER_HWMON_CONST	const
#else
#define SPANKER_HWMON_CONST
#endif

/* 6.6: attributes of a dump. */
static inline struct nlattr **spanker_dump_attrs(struct netlink_callback *cb)
{
#ifdef SPANKER_GENL_INFO_DUMP
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/* 6.5: the bus driver switches error reports on by itself. */
static inline void spanker_enable_aer(struct pci_dev *pdev)
{
#ifdef SPANKER_ENABLE_AER
	pci_enable_pcie_error_reporting(pdev);
#endif
}

#endif /* SPANKER_COMPAT_H */
